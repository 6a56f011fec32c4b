// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/find_vf.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;

class Udev : public testing::Test {
  protected:
    void runs() {
        fs::create_directories(run_.path() / "udev/data");
        std::ofstream(run_.path() / "udev/control") << "";
    }
    // Writes as udev does: a new file under another name first.
    void write(std::string const& record) {
        auto const file = run_.path() / "udev/data/n7";
        std::ofstream(file.string() + ".new") << record;
        fs::rename(file.string() + ".new", file);
    }
    Result<void> waited(std::chrono::milliseconds time) {
        return await_udev(run_.path(), 7, std::chrono::steady_clock::now() + time);
    }
    test::TemporaryFolder const run_;
};

constexpr std::chrono::milliseconds at_once{0};
constexpr std::chrono::seconds long_enough{10};

TEST_F(Udev, IsNotWaitedForWhereNoneRuns) {
    EXPECT_TRUE(waited(at_once));
}

TEST_F(Udev, IsDoneWhenItsRecordIsThere) {
    runs();
    auto const not_yet = waited(at_once);
    ASSERT_FALSE(not_yet);
    EXPECT_EQ(not_yet.error().problem, Problem::timed_out);
    write("I:123\nE:ID_NET_NAME_PATH=enp3s0\nE:ID_RENAMING=1\n");
    EXPECT_FALSE(waited(at_once)) << "it renames";
    write("I:123\nE:ID_NET_NAME_PATH=enp3s0\n");
    EXPECT_TRUE(waited(at_once));
}

TEST_F(Udev, EndsTheWaitByItsRecord) {
    runs();
    write("E:ID_RENAMING=1\n");
    std::thread udev([this] { write("I:123\n"); });
    EXPECT_TRUE(waited(long_enough));
    udev.join();
}

}  // namespace
}  // namespace vfmgr::guest
