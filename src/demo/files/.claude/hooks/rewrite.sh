#!/bin/sh
# PreToolUse, Claude dialect: allow, with another command in place of the model's.
input=$(cat)
case $input in
*'"command":"make test"'*)
    printf '%s' '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow",'
    printf '%s\n' '"updatedInput":{"command":"sh ./run-tests.sh","description":"Run the tests"}}}'
    ;;
esac
exit 0
