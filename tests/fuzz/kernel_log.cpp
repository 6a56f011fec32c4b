// SPDX-License-Identifier: Apache-2.0
// Any bytes as a record of /dev/kmsg: its text lies inside it, without a line end, and a known line
// has a cause and a command.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vfmgr/rdma/faults.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::verify;
    auto const require = [](bool promise) {
        if (!promise) std::abort();
    };
    std::string_view const record(reinterpret_cast<char const*>(data), size);
    auto const text = text_of_record(record);
    if (!text) return 0;
    require(text->find('\n') == text->npos);
    require(text->data() > record.data() && text->data() + text->size() <= record.data() + size);
    if (auto const fault = log_fault(*text))
        require(!fault->cause.empty() && !fault->command.empty());
    return 0;
}
