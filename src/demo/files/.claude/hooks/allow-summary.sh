#!/bin/sh
# PreToolUse, Claude dialect: allow skips the question that the permission mode would ask.
input=$(cat)
case $input in
*'/SUMMARY.md"'*)
    printf '%s' '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow",'
    printf '%s\n' '"permissionDecisionReason":"the summary may be written"}}'
    ;;
esac
exit 0
