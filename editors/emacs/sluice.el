;;; sluice.el --- sluice as an agent of agent-shell  -*- lexical-binding: t; -*-

;;; Commentary:

;; Load this file after agent-shell, then M-x sluice-shell.

;;; Code:

(declare-function acp-make-client "acp")
(declare-function agent-shell-make-agent-config "agent-shell")
(declare-function agent-shell-start "agent-shell")

(defgroup sluice nil
  "The sluice agent."
  :group 'tools)

(defcustom sluice-command '("sluice" "acp")
  "Program and arguments that serve ACP."
  :type '(repeat string)
  :group 'sluice)

(defun sluice-make-client (buffer)
  "Start a client of sluice for BUFFER."
  (acp-make-client :command (car sluice-command)
                   :command-params (cdr sluice-command)
                   :context-buffer buffer))

(defun sluice-agent-config ()
  "Describe sluice to agent-shell."
  (agent-shell-make-agent-config
   :identifier 'sluice
   :mode-line-name "sluice"
   :buffer-name "sluice"
   :shell-prompt "sluice> "
   :shell-prompt-regexp "sluice> "
   :client-maker #'sluice-make-client
   :install-instructions "Put `sluice' on your PATH, or set `sluice-command'."))

;;;###autoload
(defun sluice-shell ()
  "Talk to sluice in a new agent shell."
  (interactive)
  (require 'acp)
  (require 'agent-shell)
  (agent-shell-start :config (sluice-agent-config)))

(provide 'sluice)

;;; sluice.el ends here
