// SPDX-License-Identifier: Apache-2.0
// Which of a folder's files are the console's, and that a package's upgrade shows.
#include "service/console.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.hpp"

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct ConsoleTest : testing::Test {
    test::TemporaryFolder temporary;
    std::filesystem::path const folder = std::filesystem::path(temporary.path()) / "web";
    ConsoleFolder console{folder};

    void SetUp() override { std::filesystem::create_directory(folder); }
    void write(std::string const& name, std::string const& text) const {
        std::ofstream(folder / name) << text;
    }
    // As dpkg does.
    void replace(std::string const& name, std::string const& text) const {
        write(name + ".dpkg-new", text);
        std::filesystem::rename(folder / (name + ".dpkg-new"), folder / name);
    }
    std::vector<std::string> names() {
        std::vector<std::string> all;
        for (auto const& [name, file] : console.read().files) all.push_back(name);
        return all;
    }
};

TEST_F(ConsoleTest, OnlyPlainFilesOfKnownKinds) {
    for (auto const* const name : {"index.html", "app-5XWJ6KHB.js", "app.css", "icon.svg",
                                   ".hidden.html", "notes.md", "app.js.dpkg-new", "key.pem"})
        write(name, name);
    std::ofstream(std::filesystem::path(temporary.path()) / "secret.txt") << "secret";
    std::filesystem::create_symlink("../secret.txt", folder / "link.txt");
    std::filesystem::create_symlink("index.html", folder / "other.html");
    std::filesystem::create_directory(folder / "folder.js");
    ASSERT_EQ(::mkfifo((folder / "pipe.txt").c_str(), 0600), 0);
    EXPECT_THAT(names(), ElementsAre("app-5XWJ6KHB.js", "app.css", "icon.svg", "index.html"));
    auto const read = console.read();
    EXPECT_EQ(*read.files.at("icon.svg").text, "icon.svg");
    EXPECT_EQ(read.files.at("icon.svg").content_type, "image/svg+xml");
    EXPECT_TRUE(read.files.at("app-5XWJ6KHB.js").stays);
    EXPECT_FALSE(read.files.at("index.html").stays);
}

TEST_F(ConsoleTest, AnUpgradeShowsAndWhatStaysIsReadOnce) {
    write("index.html", "old");
    write("app-AAAAAAAA.js", std::string(4096, 'a'));
    auto const before = console.read();
    EXPECT_EQ(console.read().files.at("index.html").text, before.files.at("index.html").text);
    replace("index.html", "new");
    replace("app-BBBBBBBB.js", std::string(4096, 'b'));
    std::filesystem::remove(folder / "app-AAAAAAAA.js");
    auto const after = console.read();
    EXPECT_EQ(*after.files.at("index.html").text, "new");
    EXPECT_NE(after.files.at("index.html").etag, before.files.at("index.html").etag);
    EXPECT_FALSE(after.files.contains("app-AAAAAAAA.js"));
    ASSERT_TRUE(after.files.at("app-BBBBBBBB.js").compressed);
    EXPECT_LT(after.files.at("app-BBBBBBBB.js").compressed->size(), 1000U);
    EXPECT_FALSE(after.files.at("index.html").compressed) << "it fits into a packet";
    std::filesystem::remove_all(folder);
    EXPECT_THAT(names(), IsEmpty());
    SetUp();
    write("index.html", "installed again");
    EXPECT_THAT(names(), ElementsAre("index.html"));
}

TEST_F(ConsoleTest, SizeAndNumberHaveLimits) {
    write("index.html", "");
    write("large.js", std::string(console_file_bytes_max + 1, ' '));
    write("whole.js", std::string(console_file_bytes_max, ' '));
    EXPECT_THAT(names(), ElementsAre("index.html", "whole.js"));
    EXPECT_FALSE(console.read().crowded);
    for (std::size_t i = 0; i <= console_entries_max; ++i) write(std::to_string(i), "");
    EXPECT_THAT(names(), IsEmpty());
    EXPECT_TRUE(console.read().crowded);
}

TEST(NameHasHash, AsBundlersWriteIt) {
    for (auto const* const name :
         {"app-5XWJ6KHB.js", "app-0f1e2d3c4b5a.css", "a-b-AAAAAAAA.js.map"})
        EXPECT_TRUE(name_has_hash(name)) << name;
    for (auto const* const name : {"index.html", "app.js", "app-wordmark.svg", "app-5XWJ6KH.js",
                                   "app-.js", "-", "5XWJ6KHB.js"})
        EXPECT_FALSE(name_has_hash(name)) << name;
}

}  // namespace
}  // namespace vfmgr
