// SPDX-License-Identifier: Apache-2.0
// The setting of the names that the API is reached by.
#include <gmock/gmock.h>

#include <fstream>

#include "service/config.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr {
namespace {

struct ConfigHosts : testing::Test {
    test::TemporaryFolder folder;
    [[nodiscard]] Result<Config> load(std::string const& content) const {
        std::ofstream(folder.file("vfmgr.toml")) << content;
        return load_config({folder.file("vfmgr.toml"), folder.file("conf.d")});
    }
};

TEST_F(ConfigHosts, HostNamesAreNamesAndAddressesWithoutAPort) {
    auto const tls = load("[listen.tls]\nhost_names = ['VFMGR.example', '2001:DB8::1']\n");
    ASSERT_TRUE(tls) << tls.error().detail;
    EXPECT_THAT(tls->tls.host_names, testing::ElementsAre("vfmgr.example", "2001:db8::1"));
    for (auto const* wrong : {"'a'", "[1]", "['']", "['a b']", "['a:8470']", "['https://a']"}) {
        auto const refused = load(std::string("[listen.tls]\nhost_names = ") + wrong + "\n");
        ASSERT_FALSE(refused) << wrong;
        EXPECT_EQ(refused.error().detail,
                  folder.file("vfmgr.toml") +
                      ":2: listen.tls.host_names must be a list of names and addresses such as "
                      "[\"vfmgr.example.com\", \"192.0.2.1\"]");
    }
}

}  // namespace
}  // namespace vfmgr
