// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/vf_report.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "api/os/file.hpp"
#include "api/types/json.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/proof/session.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

VfReport report_on(std::string attachment, Verdict verdict = Verdict::pass) {
    VfReport report;
    auto& verification = report.verification;
    verification.run = "9c1f0b7d2e3a4455";
    verification.attachment = std::move(attachment);
    verification.verdict = verdict;
    verification.tests.push_back({"rdma_write", verdict, Judge::host, 4096, 0, {}, {}, {}});
    verification.started_at = *parse_rfc3339("2026-01-31T12:00:00.000Z");
    verification.finished_at = *parse_rfc3339("2026-01-31T12:00:12.340Z");
    report.ifname = "enp7s0";
    report.rdma_device = "rxe_3f9c";
    report.at_once_with = {"b", "c"};
    return report;
}

GuestAttachment attached(std::string attachment) {
    GuestAttachment made;
    made.attachment = std::move(attachment);
    return made;
}

void put_text(fs::path const& file, std::string const& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
}

std::string text_in(fs::path const& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

std::vector<std::string> names_in(fs::path const& folder) {
    std::vector<std::string> names;
    for (auto const& entry : fs::directory_iterator(folder))
        names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
}

class Reports : public testing::Test {
  protected:
    test::TemporaryFolder const root_;
    ReportFolder const reports_{root_.path() / "var/reports"};
    fs::path const path_ = root_.path() / "var/reports";
};

TEST_F(Reports, AreNoneBeforeTheFirst) {
    EXPECT_THAT(reports_.load().reports, IsEmpty());
    EXPECT_THAT(reports_.load().damaged, IsEmpty());
    EXPECT_TRUE(reports_.keep_only({}));
}

TEST_F(Reports, TheLastOfEachAttachmentIsKept) {
    ASSERT_TRUE(reports_.save(report_on("b")));
    ASSERT_TRUE(reports_.save(report_on("a", Verdict::fail)));
    ASSERT_TRUE(reports_.save(report_on("a")));
    EXPECT_THAT(reports_.load().reports, ElementsAre(report_on("a"), report_on("b")));
    EXPECT_THAT(reports_.load("b").reports, ElementsAre(report_on("b")));
    EXPECT_THAT(reports_.load("c").reports, IsEmpty());
    EXPECT_THAT(names_in(path_), ElementsAre("a.json", "b.json")) << "no draft stays";
}

// Scripts that read a host's verification read a report, too.
TEST_F(Reports, HaveTheMembersOfTheVerification) {
    ASSERT_TRUE(reports_.save(report_on("a")));
    auto document = parse_json(text_in(path_ / "a.json"));
    ASSERT_TRUE(document);
    EXPECT_EQ(document->at("ifname"), "enp7s0");
    for (auto const* own : {"ifname", "rdma_device", "at_once_with"})
        EXPECT_EQ(document->erase(own), 1U) << own;
    auto const verification = from_json_document<Verification>(*document);
    ASSERT_TRUE(verification);
    EXPECT_EQ(*verification, report_on("a").verification);
}

TEST_F(Reports, ADamagedFileIsNamedAndHidesNoOther) {
    ASSERT_TRUE(reports_.save(report_on("a")));
    ASSERT_TRUE(reports_.save(report_on("f")));
    fs::copy_file(path_ / "f.json", path_ / "e.json");
    put_text(path_ / "b.json", "");
    put_text(path_ / "c.json", "{\"run\":");
    put_text(path_ / ".a.json.Xy12Zw", "a draft");
    put_text(path_ / "notes.txt", "somebody's");
    fs::create_directory(path_ / "d.json");
    auto const kept = reports_.load();
    EXPECT_THAT(kept.reports, ElementsAre(report_on("a"), report_on("f")));
    std::vector<std::string> const named{"b.json", "c.json", "d.json", "e.json"};
    ASSERT_EQ(kept.damaged.size(), named.size());
    for (std::size_t n = 0; n < named.size(); ++n) {
        EXPECT_THAT(kept.damaged[n].detail, HasSubstr((path_ / named[n]).string()));
        EXPECT_NE(kept.damaged[n].remedy, "");
    }
    EXPECT_THAT(kept.damaged[2].detail, HasSubstr("can't be read"));
    EXPECT_THAT(kept.damaged[3].detail, HasSubstr("is about another attachment, f"));
    EXPECT_THAT(reports_.load("a").damaged, IsEmpty());
    EXPECT_EQ(reports_.load("c").damaged.size(), 1U);
    ASSERT_TRUE(reports_.save(report_on("c"))) << "verified again";
    EXPECT_THAT(reports_.load("c").reports, ElementsAre(report_on("c")));
}

TEST_F(Reports, GoWithTheAttachment) {
    ASSERT_TRUE(reports_.save(report_on("a")));
    ASSERT_TRUE(reports_.save(report_on("b")));
    put_text(path_ / "gone.json", "damaged");
    put_text(path_ / "notes.txt", "somebody's");
    ASSERT_TRUE(reports_.keep_only({attached("b"), attached("never-verified")}));
    EXPECT_THAT(names_in(path_), ElementsAre("b.json", "notes.txt"));
}

TEST_F(Reports, OfThisMachinesOwnAddressAreNoHostsToTake) {
    ASSERT_TRUE(reports_.save(report_on("192.168.100.10")));
    ASSERT_TRUE(reports_.save(report_on("fd00::10")));
    ASSERT_TRUE(reports_.keep_only({}));
    EXPECT_THAT(names_in(path_), ElementsAre("192.168.100.10.json", "fd00::10.json"));
    EXPECT_EQ(reports_.load().reports.size(), 2U);
}

TEST_F(Reports, AnIdThatLeadsElsewhereIsRefused) {
    for (auto const* id : {"", "../../etc/passwd", "a/b", ".hidden", "a b", "a\n"}) {
        auto const saved = reports_.save(report_on(id));
        ASSERT_FALSE(saved) << id;
        EXPECT_EQ(saved.error().problem, Problem::invalid_request) << id;
    }
    EXPECT_FALSE(reports_.save(report_on(std::string(65, 'a'))));
    EXPECT_FALSE(fs::exists(path_));
}

TEST_F(Reports, AFolderThatCantBeUsedIsNamedWithTheRemedy) {
    put_text(root_.path() / "var/reports", "a file, no folder");
    auto const saved = reports_.save(report_on("a"));
    ASSERT_FALSE(saved);
    EXPECT_THAT(saved.error().detail, HasSubstr(path_.string()));
    EXPECT_THAT(saved.error().remedy, HasSubstr("--reports"));
    auto const kept = reports_.load("a");
    ASSERT_EQ(kept.damaged.size(), 1U) << "no report is not the same as none that can be read";
    EXPECT_THAT(kept.damaged.front().detail, HasSubstr(path_.string()));
    EXPECT_FALSE(reports_.keep_only({}));
}

TEST(VfReport, TellsWhereWhenAndWithWhom) {
    auto const report = report_on("a");
    EXPECT_EQ(describe(report), verify::describe(report.verification) +
                                    "  netdev: enp7s0, RDMA device: rxe_3f9c\n"
                                    "  at the same time as: b, c\n"
                                    "  started: 2026-01-31T12:00:00.000Z, took 12.3 s\n");
    auto bare = report;
    bare.ifname.clear();
    bare.at_once_with.clear();
    bare.verification.finished_at.reset();
    EXPECT_EQ(describe(bare),
              verify::describe(report.verification) + "  started: 2026-01-31T12:00:00.000Z\n");
}

TEST(VfReport, OnlyAPassEndsWithZero) {
    EXPECT_EQ(exit_code(report_on("a")), 0);
    for (auto const verdict :
         {Verdict::fail, Verdict::skip, Verdict::not_applicable, Verdict::pending})
        EXPECT_EQ(exit_code(report_on("a", verdict)), 1) << enum_name(verdict);
}

TEST(ReplaceFile, IsTheOldOrTheNewWithTheModeAskedFor) {
    test::TemporaryFolder const folder;
    auto const file = folder.file("vf.prom");
    auto const previous = ::umask(0077);
    ASSERT_TRUE(replace_file(file, "one\n", 0644));
    ASSERT_TRUE(replace_file(file, "two\n", 0644));
    ::umask(previous);
    EXPECT_EQ(text_in(file), "two\n");
    EXPECT_EQ(fs::status(file).permissions(), fs::perms{0644});
    EXPECT_THAT(names_in(folder.path()), ElementsAre("vf.prom"));
}

TEST(ReplaceFile, LeavesNothingWhenItFails) {
    test::TemporaryFolder const folder;
    fs::create_directory(folder.file("busy"));
    fs::create_symlink("/dev/null", folder.file("link"));
    for (auto const* name : {"busy", "link"}) {
        auto const replaced = replace_file(folder.file(name), "text", 0644);
        ASSERT_FALSE(replaced);
        EXPECT_THAT(replaced.error().detail, HasSubstr("not a plain file")) << name;
        // For callers that have a detail of their own.
        EXPECT_EQ(replaced.error().causes.size(), 1U) << name;
    }
    EXPECT_FALSE(replace_file(folder.file("gone/file"), "text", 0644));
    EXPECT_THAT(names_in(folder.path()), ElementsAre("busy", "link"));
    EXPECT_TRUE(fs::is_symlink(folder.file("link")));
}

}  // namespace
}  // namespace vfmgr::guest
