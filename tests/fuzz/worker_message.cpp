// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message between a worker and its daemon: a parsed message is the same when it is
// written and parsed again.
#include <cstdlib>

#include "api/os/message_lines.hpp"
#include "vfmgr/kernel/worker.hpp"

namespace {

template <class Parse>
void check(Parse parse, std::string_view line) {
    auto const message = parse(line);
    if (!message) return;
    auto const again = vfmgr::to_line(*message);
    auto const same = parse(std::string_view(again).substr(0, again.size() - 1));
    if (!same || vfmgr::to_line(*same) != again) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    vfmgr::Lines lines;
    if (!lines.add(bytes)) return 0;
    while (auto const line = lines.next()) {
        check(vfmgr::parse_request, *line);
        check(vfmgr::parse_answer, *line);
    }
    return 0;
}
