#!/bin/sh
# Stop, Claude dialect: a block makes the agent go on, once.
input=$(cat)
case $input in
*'"stop_hook_active":false'*)
    printf '%s\n' '{"decision":"block","reason":"write SUMMARY.md before you stop"}'
    ;;
esac
exit 0
