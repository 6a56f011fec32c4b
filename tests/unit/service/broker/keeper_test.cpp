// SPDX-License-Identifier: Apache-2.0
// The file of the broker's records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/os/file.hpp"
#include "service/broker/serve.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::broker {
namespace {

using testing::HasSubstr;

VfId const kept_vf{{0, 1, 0, 0}, 0};

TEST(Keeper, KeepsNothingThatIsNotOnTheDisk) {
    test::TemporaryFolder folder;
    auto const keeper = Keeper::open(folder.path() / "absent" / "records.json").value();
    auto const added = keeper->change([](Records const& now) -> Result<Records> {
        auto more = now;
        more[kept_vf] = {};
        return more;
    });
    ASSERT_FALSE(added);
    EXPECT_THAT(added.error().detail, HasSubstr("records.json can't be written"));
    EXPECT_TRUE(keeper->now().empty());
}

TEST(Keeper, DoesNotBeginWithAFileThatItCantRead) {
    test::TemporaryFolder folder;
    ASSERT_TRUE(replace_file(folder.file("records.json"), "{\"vfs\": [", 0600));
    auto const keeper = Keeper::open(folder.file("records.json"));
    ASSERT_FALSE(keeper);
    EXPECT_THAT(keeper.error().detail, HasSubstr("records.json: "));
    EXPECT_THAT(keeper.error().remedy, HasSubstr("backup"));
}

}  // namespace
}  // namespace vfmgr::broker
