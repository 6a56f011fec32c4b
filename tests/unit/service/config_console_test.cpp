// SPDX-License-Identifier: Apache-2.0
// The settings of the web console.
#include <gtest/gtest.h>

#include <fstream>

#include "service/config.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr {
namespace {

struct ConfigConsole : testing::Test {
    test::TemporaryFolder folder;
    [[nodiscard]] Result<Config> load(std::string const& content) const {
        std::ofstream(folder.file("vfmgr.toml")) << content;
        return load_config({folder.file("vfmgr.toml"), folder.file("conf.d")});
    }
};

TEST_F(ConfigConsole, IsWhereThePackageInstallsItUnlessAnotherFolderIsNamed) {
    EXPECT_EQ(load("").value().console_folder, "/usr/share/vfmgr/web");
    EXPECT_EQ(load("[console]\nfolder = '/srv/web'\n").value().console_folder, "/srv/web");
    EXPECT_FALSE(load("[console]\nfolder = 'web'\n"));
    EXPECT_FALSE(load("[console]\nfile = '/srv/web'\n"));
}

}  // namespace
}  // namespace vfmgr
