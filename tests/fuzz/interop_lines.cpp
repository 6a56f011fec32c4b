// SPDX-License-Identifier: Apache-2.0
// Any bytes as output of ibv_rc_pingpong, perftest or rping: a line that is accepted has the same
// meaning when it is written again.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/require.hpp"
#include "vfmgr/proof/interop/lines.hpp"

namespace {

using namespace vfmgr::interop;

void read_lines(std::string_view text) {
    if (auto const end = parse_pingpong_line(text))
        require(parse_pingpong_line(make_pingpong_line(*end)) == end);
    if (auto const line = parse_perftest_line(text)) {
        require(begins_perftest_line(text));
        require(parse_perftest_line(make_perftest_line(*line)) == line);
    }
    if (auto const mtu = perftest_mtu_bytes(text)) require(make_perftest_mtu(mtu) == text);
    auto const page = perftest_page_bytes(text.substr(0, perftest_page_size));
    require(page == 0 || (page >= 4096 && page <= 65536));
    static_cast<void>(is_perftest_version(text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    // With the lengths that the server cuts them to.
    for (auto const bytes : {perftest_version_bytes, pingpong_line_bytes, perftest_line_bytes})
        read_lines(text.substr(0, bytes));
    read_lines(text);
    if (size < rping_message_bytes) return 0;
    auto const message = std::as_bytes(std::span(data, size)).first<rping_message_bytes>();
    require(std::ranges::equal(make_rping_message(parse_rping_message(message)), message));
    return 0;
}
