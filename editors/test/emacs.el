;;; emacs.el --- a conversation with `sluice acp' from a batch Emacs  -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs -Q --batch -l editors/test/emacs.el
;;
;; Loads the snippet, takes the command that it would start, and talks to it as acp.el does: JSON, one message a line,
;; through a process filter.  The model is a script that writes a file and then says so; the question for permission
;; is answered with the first option that allows once.

;;; Code:

(require 'json)

(defvar test-folder (file-name-directory (or load-file-name buffer-file-name)))
(defvar test-client nil "What the snippet handed to `acp-make-client'.")

;; The packages, as far as the snippet touches them.
(defun acp-make-client (&rest options) (setq test-client options))
(defun agent-shell-make-agent-config (&rest options) options)
(defun agent-shell-start (&rest options) (plist-get options :config))
(provide 'acp)
(provide 'agent-shell)

(load (expand-file-name "../emacs/sluice.el" test-folder) nil t)
(funcall (plist-get (sluice-shell) :client-maker) (current-buffer))

(defvar test-command
  (cons (plist-get test-client :command) (plist-get test-client :command-params)))
(defvar test-temp (make-temp-file "sluice-emacs" t))
(defvar test-workspace (expand-file-name "workspace/" test-temp))
(defvar test-target (expand-file-name "made.txt" test-workspace))
(defvar test-script (expand-file-name "script.json" test-temp))
(make-directory test-workspace)
(with-temp-file test-script
  (insert (json-serialize
           `(:steps [(:tool_calls [(:name "Write" :input (:file_path ,test-target :content "made by a tool\n"))])
                     (:text "The file is there.")]))))

(defvar test-rest "")
(defvar test-answers nil)
(defvar test-text "")
(defvar test-asked 0)
(defvar test-agent nil)

(defun test-fail (format &rest arguments)
  (princ (concat (apply #'format format arguments) "\n") #'external-debugging-output)
  (kill-emacs 1))

(defun test-send (message)
  (process-send-string test-agent (concat (json-serialize (append '(:jsonrpc "2.0") message)) "\n")))

(defun test-permission (id params)
  (setq test-asked (1+ test-asked))
  (let ((allow (seq-find (lambda (option) (equal (plist-get option :kind) "allow_once"))
                         (plist-get params :options))))
    (test-send `(:id ,id :result (:outcome ,(if allow
                                                `(:outcome "selected" :optionId ,(plist-get allow :optionId))
                                              '(:outcome "cancelled")))))))

(defun test-receive (line)
  (let* ((message (json-parse-string line :object-type 'plist :null-object nil :false-object nil))
         (id (plist-get message :id))
         (method (plist-get message :method))
         (params (plist-get message :params)))
    (cond
     ((equal method "session/update")
      (let ((update (plist-get params :update)))
        (when (equal (plist-get update :sessionUpdate) "agent_message_chunk")
          (setq test-text (concat test-text (plist-get (plist-get update :content) :text))))))
     ((equal method "session/request_permission") (test-permission id params))
     ((and method id) (test-send `(:id ,id :error (:code -32601 :message "no such method in this client"))))
     (id (push (cons id message) test-answers)))))

(defun test-filter (_process output)
  (setq test-rest (concat test-rest output))
  (while (string-match "\n" test-rest)
    (let ((line (substring test-rest 0 (match-beginning 0))))
      (setq test-rest (substring test-rest (match-end 0)))
      (test-receive line))))

(let ((default-directory test-workspace))
  (setq test-agent (make-process :name "sluice"
                                 :command (append test-command (list "--model" (concat "script:" test-script)))
                                 :connection-type 'pipe
                                 :coding 'utf-8-unix
                                 :filter #'test-filter
                                 :sentinel #'ignore
                                 :stderr (get-buffer-create "*stderr*"))))

(defvar test-id 0)

(defun test-request (method params)
  (setq test-id (1+ test-id))
  (test-send `(:id ,test-id :method ,method :params ,params))
  (let ((until (+ (float-time) 60)))
    (while (and (not (assoc test-id test-answers)) (< (float-time) until))
      (accept-process-output test-agent 0.1)))
  (let ((answer (cdr (assoc test-id test-answers))))
    (unless answer
      (test-fail "%s was not answered; stderr: %s" method (with-current-buffer "*stderr*" (buffer-string))))
    (when (plist-get answer :error)
      (test-fail "%s failed: %S" method (plist-get answer :error)))
    (plist-get answer :result)))

(let ((hello (test-request
              "initialize"
              '(:protocolVersion 1
                :clientCapabilities (:fs (:readTextFile :false :writeTextFile :false) :terminal :false)
                :clientInfo (:name "emacs-test" :version "1.0.0")))))
  (unless (equal (plist-get hello :protocolVersion) 1)
    (test-fail "initialize answered %S" hello)))

(let* ((session (test-request "session/new" `(:cwd ,test-workspace :mcpServers [])))
       (ending (test-request "session/prompt"
                             `(:sessionId ,(plist-get session :sessionId)
                               :prompt [(:type "text" :text "make the file")]))))
  (unless (equal (plist-get ending :stopReason) "end_turn")
    (test-fail "the turn ended with %S" ending)))

(unless (string-match-p "The file is there\\." test-text)
  (test-fail "the answer was: %s" test-text))
(unless (equal test-asked 1)
  (test-fail "asked for permission %d times, not once" test-asked))
(unless (equal (with-temp-buffer (insert-file-contents test-target) (buffer-string)) "made by a tool\n")
  (test-fail "the file holds something else"))

(process-send-eof test-agent)
(let ((until (+ (float-time) 10)))
  (while (and (process-live-p test-agent) (< (float-time) until))
    (accept-process-output test-agent 0.1)))
(unless (and (eq (process-status test-agent) 'exit) (zerop (process-exit-status test-agent)))
  (test-fail "after the end of its input sluice is %S, exit %S" (process-status test-agent)
             (process-exit-status test-agent)))
(delete-directory test-temp t)
(princ "emacs: agent-shell's command held a conversation\n")

;;; emacs.el ends here
