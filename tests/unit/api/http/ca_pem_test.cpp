// SPDX-License-Identifier: Apache-2.0
#include "api/http/ca_pem.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "api/http/http.hpp"
#include "tests/unit/authority.hpp"

namespace vfmgr::http {
namespace {

std::string content_of(std::string const& file) {
    std::ifstream in(file);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

TEST(CaPem, HasTheFingerprintOfItsOneCertificate) {
    test::Authority authority;
    auto const pem = content_of(authority.certificate_file());
    EXPECT_EQ(ca_fingerprint(pem), certificate_fingerprint(authority.certificate_file()));
    EXPECT_EQ(ca_fingerprint("about it:\n" + pem), ca_fingerprint(pem));
    auto const no_ca = content_of(authority.issue({}).certificate_file);
    for (std::string const& text : {std::string(), std::string("PEM"), pem + pem, pem + no_ca,
                                    no_ca, pem.substr(0, pem.size() / 2)}) {
        auto const refused = ca_fingerprint(text);
        ASSERT_FALSE(refused) << text;
        EXPECT_EQ(refused.error().problem, Problem::invalid_request);
    }
}

}  // namespace
}  // namespace vfmgr::http
