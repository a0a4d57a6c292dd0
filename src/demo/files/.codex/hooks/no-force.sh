#!/bin/sh
# PreToolUse, Codex dialect: a deny with its reason as JSON on stdout.
input=$(cat)
case $input in
*'git push --force'*)
    printf '%s' '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
    printf '%s\n' '"permissionDecisionReason":"force pushes need a person"}}'
    ;;
esac
exit 0
