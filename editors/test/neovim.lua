-- Starts `sluice acp` by the command of a plugin snippet, and holds one conversation over it the way the plugins do:
-- JSON, one message a line, through vim.system.
--
-- nvim -u NONE -l editors/test/neovim.lua codecompanion|avante
--
-- The model is a script that writes a file and then says so; the question for permission is answered with the first
-- option that allows once.

local here = vim.fs.dirname(vim.fs.dirname(vim.fs.abspath(arg[0])))
local plugin = arg[1]

local function fail(what)
  io.stderr:write(what .. "\n")
  os.exit(1)
end

-- The plugins' modules, as far as a snippet touches them.
local given
local function stub(name)
  package.preload[name] = function()
    return { setup = function(options) given = options end, build_messages = function() end }
  end
end
stub("codecompanion")
stub("codecompanion.adapters.acp.helpers")
stub("avante")

local command_of = {
  codecompanion = function() return given.adapters.acp.sluice().commands.default end,
  avante = function()
    local provider = given.acp_providers[given.provider]
    return vim.list_extend({ provider.command }, provider.args)
  end,
}
if not command_of[plugin] then fail("usage: neovim.lua codecompanion|avante") end
dofile(here .. "/neovim/" .. plugin .. ".lua")
local command = command_of[plugin]()

local folder = vim.fn.tempname()
local workspace = folder .. "/workspace"
vim.fn.mkdir(workspace, "p")
local target = workspace .. "/made.txt"
local script = folder .. "/script.json"
vim.fn.writefile({
  vim.json.encode({
    steps = {
      { tool_calls = { { name = "Write", input = { file_path = target, content = "made by a tool\n" } } } },
      { text = "The file is there." },
    },
  }),
}, script)
vim.list_extend(command, { "--model", "script:" .. script })

local answers, updates, asked, rest = {}, {}, 0, ""
local agent

local function send(message)
  message.jsonrpc = "2.0"
  agent:write(vim.json.encode(message) .. "\n")
end

local function receive(line)
  local message = vim.json.decode(line)
  if message.method == "session/update" then
    table.insert(updates, message.params.update)
  elseif message.method == "session/request_permission" then
    asked = asked + 1
    for _, option in ipairs(message.params.options) do
      if option.kind == "allow_once" then
        local outcome = { outcome = "selected", optionId = option.optionId }
        return send({ id = message.id, result = { outcome = outcome } })
      end
    end
    send({ id = message.id, result = { outcome = { outcome = "cancelled" } } })
  elseif message.method and message.id then
    send({ id = message.id, error = { code = -32601, message = "no such method in this client" } })
  elseif message.id then
    answers[message.id] = message
  end
end

local errors = {}
agent = vim.system(command, {
  cwd = workspace,
  stdin = true,
  stdout = function(_, data)
    if not data then return end
    rest = rest .. data
    while true do
      local line, after = rest:match("^([^\n]*)\n(.*)$")
      if not line then return end
      rest = after
      vim.schedule(function() receive(line) end)
    end
  end,
  stderr = function(_, data)
    if data then table.insert(errors, data) end
  end,
})

local next_id = 0
local function request(method, params)
  next_id = next_id + 1
  local id = next_id
  send({ id = id, method = method, params = params })
  if not vim.wait(60000, function() return answers[id] ~= nil end, 10) then
    fail(method .. " was not answered; stderr: " .. table.concat(errors))
  end
  if answers[id].error then fail(method .. " failed: " .. vim.inspect(answers[id].error)) end
  return answers[id].result
end

local hello = request("initialize", {
  protocolVersion = 1,
  clientCapabilities = { fs = { readTextFile = false, writeTextFile = false }, terminal = false },
  clientInfo = { name = "neovim-test", version = "1.0.0" },
})
if hello.protocolVersion ~= 1 then fail("initialize answered version " .. vim.inspect(hello.protocolVersion)) end

local session = request("session/new", { cwd = workspace, mcpServers = {} })
local ending = request("session/prompt", {
  sessionId = session.sessionId,
  prompt = { { type = "text", text = "make the file" } },
})

local text = ""
for _, update in ipairs(updates) do
  if update.sessionUpdate == "agent_message_chunk" then text = text .. update.content.text end
end
if ending.stopReason ~= "end_turn" then fail("the turn ended with " .. vim.inspect(ending.stopReason)) end
if not text:find("The file is there.", 1, true) then fail("the answer was: " .. text) end
if asked ~= 1 then fail("asked for permission " .. asked .. " times, not once") end
local lines = vim.fn.readfile(target)
if lines[1] ~= "made by a tool" then fail("the file holds " .. vim.inspect(lines)) end

agent:write(nil)
local ended = agent:wait(10000)
if ended.code ~= 0 then fail("after the end of its input sluice exited with " .. ended.code) end
vim.fn.delete(folder, "rf")
print("neovim: " .. plugin .. " held a conversation")
