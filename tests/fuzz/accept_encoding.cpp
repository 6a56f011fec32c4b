// SPDX-License-Identifier: Apache-2.0
// Any bytes as the value of Accept-Encoding: the same after a list that names none of ours, and a
// later element decides nothing for the one that names gzip.
#include <cstdint>
#include <string>

#include "api/http/gzip.hpp"
#include "tests/fuzz/require.hpp"

using namespace vfmgr;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const text(reinterpret_cast<char const*>(data), size);
    require(http::accepts_gzip("br, identity;q=0.5, " + text) == http::accepts_gzip(text));
    require(http::accepts_gzip(text + ", gzip"));
    require(!http::accepts_gzip(text + ", gzip;q=0"));
    return 0;
}
