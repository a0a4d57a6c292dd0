#!/bin/sh
# UserPromptSubmit: plain stdout becomes context for the model.
cat > /dev/null
echo "the release branch is called maple-7"
