// SPDX-License-Identifier: Apache-2.0
#include "api/http/gzip.hpp"

#include <gtest/gtest.h>

namespace vfmgr::http {
namespace {

TEST(AcceptEncoding, TakesGzip) {
    for (auto const* value :
         {"gzip", "GZip", "x-gzip", "deflate, gzip", "br;q=1.0, gzip;q=0.8", "gzip ; q=0.001", "*",
          "identity;q=0, *;q=0.5", ",gzip,", "*;q=0, gzip"})
        EXPECT_TRUE(accepts_gzip(value)) << value;
    for (auto const* value : {"", "identity", "br, deflate", "gzip;q=0", "gzip; Q=0.000", "*;q=0",
                              "*, gzip;q=0", "gzipped", ",;q=1"})
        EXPECT_FALSE(accepts_gzip(value)) << value;
}

}  // namespace
}  // namespace vfmgr::http
