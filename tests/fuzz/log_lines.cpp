// SPDX-License-Identifier: Apache-2.0
// Any bytes as a kernel's log: lines lie inside it, one after the other, without a line end. Any
// line as kernel output, stored in each log format: it is parsed as it was written, except that a
// prefix in its own text may be cut off.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/require.hpp"
#include "vfmgr/machine/log_lines.hpp"

namespace {

void require_lines_inside(std::string_view text) {
    auto const* behind = text.data();
    for (auto const& line : vfmgr::checks::parse_kernel_log(text).lines) {
        require(std::isfinite(line.seconds) && line.seconds >= 0);
        require(line.text.find('\n') == line.text.npos);
        if (line.text.empty()) continue;
        require(line.text.data() >= behind);
        behind = line.text.data() + line.text.size();
    }
    require(behind <= text.data() + text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    require_lines_inside(text);
    auto const said = text.substr(0, text.find_first_of("\r\n"));
    for (auto const* const form :
         {"6,1,2,-;", "[    1.000000] ", "<6>[    1.000000] ", "kern  :info  : [    1.000000] ",
          "[Sun Nov 22 10:00:00 2026] ", "2026-11-22T10:00:00,000001+00:00 ",
          "2026-11-22T10:00:00+0000 host kernel: ", "Nov 22 10:00:00 host kernel: "}) {
        auto const line = form + std::string(said);
        auto const log = vfmgr::checks::parse_kernel_log(line);
        require(log.lines.size() == 1 && said.ends_with(log.lines[0].text));
        if (*form == '6') require(log.lines[0].text == said);
        if (said.find_first_of("[:") == said.npos) require(log.lines[0].text == said);
    }
    return 0;
}
