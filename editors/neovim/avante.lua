-- avante.nvim: sluice as an ACP provider. Merge into your own call of setup().
require("avante").setup({
  provider = "sluice",
  acp_providers = {
    sluice = {
      command = "sluice",
      args = { "acp" },
    },
  },
})
