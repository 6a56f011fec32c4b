// SPDX-License-Identifier: Apache-2.0
// Compiles the toml++ library's own code once, from its headers. Distributions have it as a shared
// library under different names, or not at all. Header-only use would compile it in every file.
#include <toml++/toml.h>
