// SPDX-License-Identifier: Apache-2.0
// Any bytes as the kernel's information on a descriptor or a process: a name taken from it is
// short, printable and occurs in it; bytes are pinned only where the text has them, in KiB.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "guest-tools/gpu/dma_buf.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const pinned = vfmgr::guest::gpu::parse_pinned_bytes(text);
    if (pinned % 1024 != 0) std::abort();
    if (pinned != 0 && text.find("VmPin:") == text.npos) std::abort();
    auto const name = vfmgr::guest::gpu::parse_exporter(text);
    if (!name) return 0;
    if (name->empty() || name->size() > 64 || text.find(*name) == text.npos) std::abort();
    for (char const byte : *name)
        if (byte <= ' ' || byte >= '\x7f') std::abort();
    return 0;
}
