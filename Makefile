# SPDX-License-Identifier: Apache-2.0
# gpuprof: one non-recursive Makefile. `make help` lists the targets.
#
#   BUILD=dir      where everything that is built goes (standard: build)
#   V=1            print the commands
#   SANITIZE=list  address,undefined or thread: builds into build/<list>
#   WERROR=        warnings are no errors
#   CC, CFLAGS, CPPFLAGS, LDFLAGS  as usual
#   CROSS=aarch64-linux-gnu-  cross-builds into build/<triplet>
#   ZSTD_A, ZSTD_CFLAGS  libzstd.a and where its zstd.h is, if the compiler does not find them
#   prefix, bindir, libdir, docdir, mandir, includedir, pkgconfigdir, bashcompdir, zshcompdir,
#   fishcompdir, DESTDIR  for install

VERSION := 0.1.0
prefix ?= /usr/local
SANITIZE ?=
CROSS ?=
BUILD ?= build$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))$(if $(CROSS),/$(CROSS:-=))
comma := ,
# One spelling of the folder, or the dependency files of one run mean nothing to the next.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))

ifeq ($(origin CC),default)
CC := $(CROSS)gcc
endif
ifeq ($(origin AR),default)
AR := $(CROSS)ar
endif
OPT ?= -O2
CFLAGS ?= $(OPT) -g
WERROR ?= -Werror
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla $(WERROR)
ifneq ($(SANITIZE),)
# The sanitizers' code makes gcc see overflows that are not there, and ThreadSanitizer does not
# follow a fence, of which it need not tell each build. clang knows neither of these by name.
WARN += -Wno-error -Wno-stringop-overflow -Wno-tsan -Wno-unknown-warning-option
endif
STD := -std=gnu11 -D_GNU_SOURCE -DGPUPROF_RELEASE='"$(VERSION)"'
SAN := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
# Contracts are asserted where sanitizers and fuzzers run; what ships is what the suite tests.
ASSERT := $(if $(SANITIZE),,-DNDEBUG)
PKG_CONFIG ?= pkg-config
ZSTD_LIBS := -lzstd
CJSON_CFLAGS := $(shell $(PKG_CONFIG) --cflags libcjson 2>/dev/null)
CJSON_LIBS := -lcjson

ifeq ($(V),1)
Q :=
say :=
else
Q := @
silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = @$(if $(silent),,printf '  %-6s %s\n' $(1) $(2);)
endif

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all check check-fast check-long check-gpu check-consumers check-aarch64 bench fuzz style \
	format install uninstall deb tarball clean help fetch-cuda fetch-cupti fetch-libraries \
	fetch-python demo-parts unit programs

all: lib collector-bin demo-parts

# The sources of a part: files lie in it or in a folder of it. A folder deeper down is for what is
# no part of the whole (another form of a file, a library of its own).
sources = $(sort $(wildcard $(1)/*.$(2) $(1)/*/*.$(2)))

# Archives, of which the linker takes what is needed: no list of objects is kept for what uses a
# part of one, and a double that stands before them takes a member's place.
$(BUILD)/%.a:
	@mkdir -p $(@D)
	$(Q)rm -f $@
	$(call say,AR,$@) $(AR) rcs $@ $^

UNWIND_SO ?= $(wildcard $(shell $(CC) -print-file-name=libunwind.so.8))
UNWIND_FILES := $(if $(UNWIND_SO),$(BUILD)/libgpuprof-unwind.so $(BUILD)/libgpuprof-lzma.so)
lib: $(BUILD)/libgpuprof.so $(BUILD)/libgpuprof-os.so $(UNWIND_FILES)
collector-bin: $(BUILD)/gpuprof-collector
.PHONY: lib collector-bin

# ---- libgpuprof.so: needs libc only, exports exactly what exports.map names -------------------

# zstd is linked in, hidden: see inject/store/compress.h. Only a cross build may do without, since
# Debian has the other machine's archive only for those who add its architecture to apt.
ZSTD_A ?= $(shell $(CC) -print-file-name=libzstd.a)
ZSTD_CFLAGS ?=
ZSTD_USED := $(if $(CROSS),$(wildcard $(ZSTD_A)),$(ZSTD_A))
STORED_SRC := $(wildcard inject/*/stored/*.c)
LZMA_SRC := $(wildcard inject/*/lzma/*.c)
LZMA_MAP := $(LZMA_SRC:.c=.map)
OS_SRC := $(wildcard inject/host/os/*.c) inject/base/objects.c inject/base/signals.c \
	inject/base/ticks.c
OS_OBJ := $(OS_SRC:%=$(BUILD)/os/%.o)
EXPORTS_MAP := inject/exports.map
PUBLIC_H := inject/range/gpuprof.h
INJECT_SRC := $(filter-out $(STORED_SRC) $(LZMA_SRC) $(if $(ZSTD_USED),,%/compress.c), \
	$(call sources,inject,c)) $(if $(ZSTD_USED),,$(STORED_SRC)) $(call sources,inject,S)
INJECT_OBJ := $(INJECT_SRC:%=$(BUILD)/pic/%.o)
FORMATS_SRC := $(call sources,formats,c)
FORMATS_PIC_OBJ := $(FORMATS_SRC:%=$(BUILD)/pic/%.o)
INJECT_CFLAGS := $(ASSERT) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt \
	-fexceptions -fasynchronous-unwind-tables -Iinject -Iformats
INJECT_LDFLAGS := -shared -Wl,-soname,libgpuprof.so -Wl,-Bsymbolic -Wl,-z,now -Wl,-z,relro \
	-Wl,--no-undefined -Wl,-z,nodelete -Wl,--as-needed -Wl,--exclude-libs,ALL -Wl,-z,text \
	-Wl,--version-script=$(BUILD)/exports.map

$(filter %/compress.c.o,$(INJECT_OBJ)): INJECT_CFLAGS += $(ZSTD_CFLAGS)
$(BUILD)/pic/%.c.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(STD) $(WARN) $(CFLAGS) $(SAN) $(INJECT_CFLAGS) \
		-MMD -MP -c $< -o $@

$(BUILD)/pic/%.S.o: %.S
	@mkdir -p $(@D)
	$(call say,AS,$<) $(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@

# The same objects for tests and benches: what is tested is what ships. libc stands before them in
# a link, or the library's own dlsym and _exit, and with them all that hooks a process, would be it.
$(BUILD)/pic/libinject.a: $(INJECT_OBJ)
$(BUILD)/pic/libformats.a: $(FORMATS_PIC_OBJ)
INJECT_A := $(BUILD)/pic/libinject.a $(BUILD)/pic/libformats.a
with_inject = $(filter %.c %.o,$^) -lc $(filter %.a,$^)

$(BUILD)/exports.map: $(EXPORTS_MAP)
	@mkdir -p $(@D)
	$(call say,CPP,$@) $(CC) $(CPPFLAGS) -E -P -x c -Iformats -MMD -MP -MF $@.d -MT $@ $< -o $@

$(BUILD)/libgpuprof.so: $(INJECT_OBJ) $(BUILD)/pic/libformats.a $(BUILD)/exports.map
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) $(SAN) $(INJECT_LDFLAGS) $(filter %.o %.a,$^) \
		$(ZSTD_USED) -o $@
	$(if $(ZSTD_USED),,$(Q)echo "note: no libzstd.a for $(CROSS:-=): recordings are not compressed")

# libgpuprof-os.so, which `run --os` preloads beside it: hooks of the C library's calls that wait.
# Never instrumented: a sanitizer calls them before it is there. Not split into hot and cold parts,
# of which only one would have the personality that os_wrappers.c gives to a function. Optimised in
# any build: what a wrapper lets through it must jump to, as dlopen and vfork know their caller.
OS_CFLAGS := -DNDEBUG -O2 -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-plt -fexceptions \
	-fasynchronous-unwind-tables -ffunction-sections -fno-reorder-blocks-and-partition \
	-Iinject -Iformats
$(BUILD)/os/%.c.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(STD) $(WARN) $(CFLAGS) $(OS_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/os_exports.map: inject/host/os/os_exports.map
	@mkdir -p $(@D)
	$(call say,CPP,$@) $(CC) $(CPPFLAGS) -E -P -x c -Iinject -MMD -MP -MF $@.d -MT $@ $< -o $@

$(BUILD)/libgpuprof-os.so: $(OS_OBJ) $(BUILD)/os_exports.map
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic \
		-Wl,-z,now -Wl,-z,relro -Wl,--no-undefined -Wl,-z,nodelete -Wl,-z,text -Wl,--gc-sections \
		-Wl,--version-script=$(BUILD)/os_exports.map $(OS_OBJ) -o $@

# libunwind under a name of its own, so that it answers nobody else's need of one; see
# inject/stack/unwinder.h. Its need of liblzma, which it asks for names only, is met by a stand-in.
# A cross build has it only where the other machine's is installed; stacks are walked without it,
# too.
$(BUILD)/libgpuprof-unwind.so: $(UNWIND_SO) $(BUILD)/libgpuprof-lzma.so
	$(call say,COPY,$@) cp -L $< $@.new
	$(Q)patchelf --replace-needed liblzma.so.5 libgpuprof-lzma.so $@.new
	$(Q)patchelf --set-soname $(@F) $@.new
	$(Q)mv $@.new $@

$(BUILD)/libgpuprof-lzma.so: $(LZMA_SRC) $(LZMA_MAP)
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(CPPFLAGS) $(STD) $(WARN) $(CFLAGS) $(LDFLAGS) -fPIC -shared \
		-Wl,-soname,$(@F) -Wl,--version-script=$(LZMA_MAP) $< -o $@

# ---- gpuprof-collector --------------------------------------------------------------------

COLLECTOR_SRC := $(call sources,collector,c)
COLLECTOR_OBJ := $(COLLECTOR_SRC:%=$(BUILD)/obj/%.o)
FORMATS_OBJ := $(FORMATS_SRC:%=$(BUILD)/obj/%.o)
# Of libiberty, an archive, two members are linked in: the demangler of Rust, whose licence (LGPL 2
# with an exception for linking) asks for nothing, and its table of letters (LGPL 2): see NOTICE.
COLLECTOR_LIBS := $(ZSTD_LIBS) $(CJSON_LIBS) -ldw -lelf -lisal -lsqlite3 -liberty -lstdc++ -lm
# Each event goes through some forty short functions of many files, so the whole is optimised as one
# (a tenth less time). Objects have their ordinary code as well, which is what tests link, quickly.
WHOLE := $(if $(SANITIZE)$(findstring clang,$(CC))$(filter-out file,$(origin CFLAGS)),,\
	-O3 -flto=auto -ffat-lto-objects)
PLAIN := $(if $(WHOLE),-fno-lto)

$(BUILD)/obj/%.c.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(STD) $(WARN) $(CFLAGS) $(WHOLE) $(SAN) $(ASSERT) \
		$(CJSON_CFLAGS) -Icollector -Iformats -MMD -MP -c $< -o $@

# What is shown or served is put in by the assembler, of which link-time optimisation sees nothing.
shown = $(wildcard $(addprefix collector/$(1)/*.,css html js))
$(BUILD)/obj/collector/page/page_files.c.o: $(call shown,page)
$(BUILD)/obj/collector/view/view.c.o: $(call shown,view)
# A page allows its own style and script by their hashes (Content-Security-Policy).
hash = $(shell cd collector/page && cat $(1) | sha256sum | cut -c-64 | tr a-f A-F | \
	basenc --base16 -d | base64)
SECTION_JS = $(shell sed -n '/^SECTION/{s/SECTION.//;s/,.*/.js/p}' \
	collector/page/page_sections.def)
PAGE_HASHES = -DSTYLE_HASH='"$(call hash,page.css)"' \
	-DSCRIPT_HASH='"$(call hash,page.js $(SECTION_JS))"' \
	-DCOMPARE_HASH='"$(call hash,page.js compare.js)"'
$(BUILD)/obj/collector/page/page.c.o: $(call shown,page) collector/page/page_sections.def
%/collector/page/page.c.o: CPPFLAGS += $(PAGE_HASHES)
$(BUILD)/obj/collector/flame/flame_svg.c.o: $(call shown,flame)
$(addprefix $(BUILD)/obj/collector/,page/page_files.c.o view/view.c.o flame/flame_svg.c.o): WHOLE :=

$(BUILD)/libcollector.a: $(filter-out %/main.c.o,$(COLLECTOR_OBJ))
$(BUILD)/libformats.a: $(FORMATS_OBJ)
COLLECTOR_A := $(BUILD)/libcollector.a $(BUILD)/libformats.a

$(BUILD)/gpuprof-collector: $(filter %/main.c.o,$(COLLECTOR_OBJ)) $(COLLECTOR_A)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) $(WHOLE) $(SAN) $^ $(COLLECTOR_LIBS) -o $@

# ---- test doubles, programs, unit tests, benches: fragments, same make ------------------------

-include test/sim/sim.mk
-include test/test.mk

check:
	./scripts/check --no-setup
# Half a minute, after each change.
check-fast: all programs unit-programs
	$(Q)/usr/bin/python3 -m pytest -n $(shell nproc) test/style test/abi \
		test/cases/test_unit_binaries.py test/cases/test_spec.py test/cases/test_truth.py
check-long:
	./scripts/check --no-setup -m long

fetch-cuda:
	./scripts/fetch-cuda $(BUILD)/cuda
fetch-cupti:
	./scripts/fetch-cuda --cupti $(BUILD)/cupti
fetch-libraries:
	./scripts/fetch-cuda --libraries $(BUILD)/libraries
fetch-python:
	./scripts/fetch-python $(BUILD)/python

# ---- style ---------------------------------------------------------------------------------

STYLE_FILES := $(shell git ls-files '*.c' '*.h' 2>/dev/null)
style:
	$(Q)clang-format --dry-run -Werror $(STYLE_FILES)
	$(Q)/usr/bin/python3 test/style/check_includes.py
	$(Q)/usr/bin/python3 test/style/check_texts.py
format:
	$(Q)clang-format -i $(STYLE_FILES)

# ---- install ---------------------------------------------------------------------------------

bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
docdir ?= $(prefix)/share/doc/gpuprof
mandir ?= $(prefix)/share/man
includedir ?= $(prefix)/include
bashcompdir ?= $(prefix)/share/bash-completion/completions
zshcompdir ?= $(prefix)/share/zsh/site-functions
fishcompdir ?= $(prefix)/share/fish/vendor_completions.d
parts := $(libdir)/gpuprof
pkgconfigdir ?= $(prefix)/share/pkgconfig

# The front command finds its parts from where it stands: the tree it is in may be moved.
COMPLETIONS := $(BUILD)/completion.bash $(BUILD)/completion.zsh $(BUILD)/completion.fish
VERBS := run merge report stats export flame memory diff view ctl top dump doctor \
	recover manual completion help demo
MANUALS := $(BUILD)/gpuprof.1 $(VERBS:%=$(BUILD)/gpuprof-%.1)
TOPICS := tuning tables findings losses json events nsys limits exit-status
TOPIC_MANUALS := $(TOPICS:%=$(BUILD)/gpuprof-%.7)
DOCUMENTS := README.md GUIDE.md SECURITY.md CHANGELOG.md LICENSE NOTICE \
	formats/event-stream.md formats/answers.md
install: all $(MANUALS) $(TOPIC_MANUALS) $(BUILD)/gpuprof.h.3 $(COMPLETIONS)
	$(Q)for folder in "$(bindir)" "$(parts)/demo" "$(docdir)" "$(mandir)/man1" \
		"$(mandir)/man3" "$(mandir)/man7" "$(includedir)" \
		"$(pkgconfigdir)" "$(bashcompdir)" "$(zshcompdir)" "$(fishcompdir)"; do \
		install -d "$(DESTDIR)$$folder"; done
	$(Q)sed "s|^installed=.*|installed='$$(realpath -ms --relative-to="$(bindir)" "$(parts)")'|" \
		scripts/gpuprof > "$(DESTDIR)$(bindir)/gpuprof"
	$(Q)chmod 755 "$(DESTDIR)$(bindir)/gpuprof"
	$(Q)install -m 755 $(BUILD)/gpuprof-collector "$(DESTDIR)$(parts)/gpuprof-collector"
	$(Q)install -m 755 $(BUILD)/libgpuprof.so $(BUILD)/libgpuprof-os.so $(UNWIND_FILES) \
		"$(DESTDIR)$(parts)/"
	$(Q)install -m 755 $(DEMO_FILES) "$(DESTDIR)$(parts)/demo/"
	$(Q)install -m 644 $(DOCUMENTS) "$(DESTDIR)$(docdir)/"
	$(Q)install -m 644 $(PUBLIC_H) $(PUBLIC_H:.h=.py) "$(DESTDIR)$(includedir)/"
	$(Q)sed 's|@VERSION@|$(VERSION)|; s|@INCLUDEDIR@|$(includedir)|' inject/range/gpuprof.pc.in \
		> "$(DESTDIR)$(pkgconfigdir)/gpuprof.pc"
	$(Q)chmod 644 "$(DESTDIR)$(pkgconfigdir)/gpuprof.pc"
	$(Q)install -m 644 $(MANUALS) "$(DESTDIR)$(mandir)/man1/"
	$(Q)install -m 644 $(BUILD)/gpuprof.h.3 "$(DESTDIR)$(mandir)/man3/gpuprof.h.3"
	$(Q)install -m 644 $(TOPIC_MANUALS) "$(DESTDIR)$(mandir)/man7/"
	$(Q)install -m 644 $(BUILD)/completion.bash "$(DESTDIR)$(bashcompdir)/gpuprof"
	$(Q)install -m 644 $(BUILD)/completion.zsh "$(DESTDIR)$(zshcompdir)/_gpuprof"
	$(Q)install -m 644 $(BUILD)/completion.fish "$(DESTDIR)$(fishcompdir)/gpuprof.fish"

uninstall:
	$(Q)for path in "$(bindir)/gpuprof" "$(parts)" "$(docdir)" \
		$(patsubst $(BUILD)/%,"$(mandir)/man1/%",$(MANUALS)) \
		$(patsubst $(BUILD)/%,"$(mandir)/man7/%",$(TOPIC_MANUALS)) \
		"$(mandir)/man3/gpuprof.h.3" "$(includedir)/gpuprof.h" "$(includedir)/gpuprof.py" \
		"$(pkgconfigdir)/gpuprof.pc" "$(bashcompdir)/gpuprof" \
		"$(zshcompdir)/_gpuprof" "$(fishcompdir)/gpuprof.fish"; do \
		rm -rf "$(DESTDIR)$$path"; done

# A package for Debian and its kin, and an archive that runs wherever it is unpacked.
MAINTAINER ?= gpuprof <gpuprof@packages.invalid>
PACKAGE := gpuprof_$(VERSION)
TARBALL := gpuprof-$(VERSION)-$(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
deb: all
	$(Q)rm -rf $(BUILD)/deb
	$(Q)$(MAKE) -s install DESTDIR=$(CURDIR)/$(BUILD)/deb prefix=/usr \
		libdir=/usr/lib/$(shell $(CC) -print-multiarch) zshcompdir=/usr/share/zsh/vendor-completions
	$(call say,DEB,$(BUILD)/$(PACKAGE).deb) MAINTAINER='$(MAINTAINER)' scripts/make-deb $(BUILD)/deb \
		$(VERSION) $(BUILD)/$(PACKAGE).deb
tarball: all
	$(Q)rm -rf $(BUILD)/tarball
	$(Q)$(MAKE) -s install DESTDIR=$(CURDIR)/$(BUILD)/tarball prefix=/$(TARBALL)
	$(call say,TAR,$(BUILD)/$(TARBALL).tar.gz) scripts/make-tarball $(BUILD)/tarball $(TARBALL) \
		$(BUILD)/$(TARBALL).tar.gz

$(COMPLETIONS): $(BUILD)/completion.%: $(BUILD)/gpuprof-collector
	$(call say,SHELL,$@) $(BUILD)/gpuprof-collector completion $* > $@

$(BUILD)/gpuprof.1: $(BUILD)/gpuprof-collector
	$(call say,MAN,$@) $(BUILD)/gpuprof-collector manual > $@

$(TOPIC_MANUALS): $(BUILD)/gpuprof-%.7: $(BUILD)/gpuprof-collector
	$(call say,MAN,$@) $(BUILD)/gpuprof-collector manual $* > $@

$(BUILD)/gpuprof-%.1: $(BUILD)/gpuprof-collector
	$(call say,MAN,$@) $(BUILD)/gpuprof-collector manual $* > $@

$(BUILD)/gpuprof.h.3: $(BUILD)/gpuprof-collector
	$(call say,MAN,$@) $(BUILD)/gpuprof-collector manual gpuprof.h > $@

clean:
	rm -rf $(BUILD)

help:
	@echo 'all        libgpuprof.so, gpuprof-collector, the demo'
	@echo 'check      every test that needs no GPU (./scripts/check sets up first)'
	@echo 'check-fast  style, unit tests, ABI, the truth of what is recorded: after each change'
	@echo 'check-long  the tests that take too long for every run'
	@echo 'check-gpu  acceptance suite on a machine with a GPU'
	@echo 'check-frameworks  CuPy, JAX, Numba, TensorFlow ... from PyPI, likewise'
	@echo 'check-torch  a real PyTorch, fetched from PyPI, on the simulated CUDA'
	@echo 'check-consumers  HTA, TensorBoard and Perfetto, from PyPI, on our traces'
	@echo 'check-aarch64  the core of the suite, cross-built, under qemu-user'
	@echo 'bench      figures, one a line, and build/bench.json'
	@echo 'fuzz       fuzz the readers with libFuzzer (FUZZ_SECONDS=60); fuzz-afl: with AFL++'
	@echo 'torture    ends and cuts at random moments; writes test/RELIABILITY.md (LONG=1)'
	@echo 'deb        a package for Debian and its kin (MAINTAINER="Name <address>")'
	@echo 'tarball    an archive that runs wherever it is unpacked'
	@echo 'style format install uninstall clean fetch-cuda fetch-cupti fetch-libraries fetch-python'

-include $(BUILD)/exports.map.d $(INJECT_OBJ:.o=.d) $(FORMATS_PIC_OBJ:.o=.d)
-include $(BUILD)/os_exports.map.d $(OS_OBJ:.o=.d)
-include $(COLLECTOR_OBJ:.o=.d) $(FORMATS_OBJ:.o=.d)
