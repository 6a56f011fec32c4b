// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/pacer.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vfmgr::stream {
namespace {

struct Case {
    char const* text;
    std::uint64_t bits;
};

TEST(Rate, IsReadAsTcReadsIt) {
    for (auto const& [text, bits] :
         {Case{"100Mbit", 100'000'000}, Case{"100mbit", 100'000'000},
          Case{"2.5gbit", 2'500'000'000}, Case{"0.1kbit", 100}, Case{"1", 1}, Case{"64000", 64'000},
          Case{"1bit", 1}, Case{"1kibit", 1024}, Case{"1Gibit", 1 << 30}, Case{"1bps", 8},
          Case{"12.5mbps", 100'000'000}, Case{"1kibps", 8192}, Case{"10tbit", 10'000'000'000'000}})
        EXPECT_EQ(parse_rate(text).value_or(0), bits) << text;
}

TEST(Rate, RefusesWhatIsNone) {
    for (std::string const text :
         {"", "mbit", "0", "0.5", "-1mbit", "1e3", "1.2.3mbit", "100m", "100 mbit", "100mbits", ".",
          "11tbit", "99999999999999999999999999999999999999mbit", "1ibit", "nanbit", "0x10"})
        EXPECT_FALSE(parse_rate(text)) << text;
    auto const refused = parse_rate("100mb");
    EXPECT_EQ(refused.error().problem, Problem::invalid_request);
    EXPECT_EQ(refused.error().detail, "'100mb' is not a rate");
    EXPECT_NE(refused.error().remedy.find("100mbit"), std::string::npos);
}

}  // namespace
}  // namespace vfmgr::stream
