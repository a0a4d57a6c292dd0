-- CodeCompanion: an ACP adapter for sluice. Merge into your own call of setup().
require("codecompanion").setup({
  adapters = {
    acp = {
      sluice = function()
        return {
          name = "sluice",
          formatted_name = "sluice",
          type = "acp",
          roles = { llm = "assistant", user = "user" },
          commands = { default = { "sluice", "acp" } },
          defaults = { mcpServers = {}, timeout = 20000 },
          parameters = {
            protocolVersion = 1,
            clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
            clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
          },
          handlers = {
            -- sluice asks for no login: keys are named in its configuration.
            lifecycle = {
              setup = function()
                return true
              end,
              auth = function()
                return true
              end,
            },
            request = { build_messages = require("codecompanion.adapters.acp.helpers").build_messages },
          },
        }
      end,
    },
  },
  interactions = { chat = { adapter = "sluice" } },
})
