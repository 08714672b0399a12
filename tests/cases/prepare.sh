#!/bin/sh
# `prepare.sh WHAT DIR [ROOT]`: makes what the command of a case works on. ROOT is this project.
set -eu
cd "$2"
case "$1" in
tar)
	tar cf tree.tar -C "$3" src tests/live xtask
	;;
make)
	mkdir project
	cd project
	printf 'OBJECTS = $(patsubst %%.c,%%.o,$(wildcard *.c))\nall: $(OBJECTS)\n' > Makefile
	for i in 1 2 3 4 5 6 7 8 9 10; do
		printf '#include <stdio.h>\nint f%d(void)\n{\n\treturn printf("%d\\n");\n}\n' "$i" "$i" > "f$i.c"
	done
	;;
git)
	mkdir origin
	cp -r "$3/src" "$3/xtask" origin
	git init -q origin
	git -C origin add .
	git -C origin -c user.name=case -c user.email=case@localhost commit -q -m case
	;;
cargo)
	cargo init -q --vcs none --name hello hello
	;;
headers)
	i=0
	while [ "$i" -lt 1000 ]; do
		mkdir -p "include/$i"
		echo "-I$2/include/$i" >> options
		i=$((i + 1))
	done
	i=0
	while [ "$i" -lt 200 ]; do
		echo "int i$i;" > "include/999/header-$i.h"
		echo "#include \"header-$i.h\"" >> all.c
		i=$((i + 1))
	done
	;;
libraries)
	i=0
	while [ "$i" -lt 500 ]; do
		mkdir -p "libraries/$i"
		path="${path:-}$2/libraries/$i:"
		i=$((i + 1))
	done
	echo 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do h5dump --version; done' > short
	{ echo "export LD_LIBRARY_PATH=$path"; cat short; } > long
	;;
esac
