#!/bin/sh
# PreToolUse, Claude dialect: exit 2 denies, and stderr is the reason.
input=$(cat)
case $input in
*'"command":"rm -rf ./important'*)
    echo "deleting ./important is not allowed" >&2
    exit 2
    ;;
esac
exit 0
