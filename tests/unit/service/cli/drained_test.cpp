// SPDX-License-Identifier: Apache-2.0
// vfctl drained: silence is no answer. Each way of failing to observe, and a boot.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "api/http/tls.hpp"
#include "service/cli/contexts.hpp"
#include "service/cli/drained.hpp"
#include "tests/unit/free_port.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "vfmgr/store/store.hpp"

namespace vfmgr {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

checks::Facts nobody() {
    checks::Facts facts;
    facts.patterns = {"/proc/[0-9]*/fd/*"};
    return facts;
}

checks::Facts held_by(std::string const& vm) {
    auto facts = nobody();
    facts.links["/proc/42/fd/9"] = {"/dev/vfio/3", 0};
    facts.files["/proc/42/comm"] = {"qemu-system-x86\n", 0};
    facts.files["/proc/42/cmdline"] = {"guest=" + vm + ",debug-threads=on\n", 0};
    return facts;
}

Attachment attachment(std::string const& vm) {
    Attachment value;
    value.id = "00000001";
    value.spec.vm = vm;
    value.spec.pf = PciAddress{0, 1, 0, 0};
    value.vf = {PciAddress{0, 1, 0, 0}, 1};
    value.vm = vm;
    value.vm_uuid = "11111111-1111-1111-1111-111111111111";
    return value;
}

// A host whose vfmgrd has run since it booted, and is down.
class DrainedTest : public testing::Test {
  protected:
    DrainedTest() {
        options_.host = "unix:" + folder_.file("socket");
        sources_.start_mark = folder_.file("run/started");
        sources_.vfio_holders = nobody;
        sources_.answer_time_max = std::chrono::seconds(1);
        EXPECT_TRUE(leave_start_mark(sources_.start_mark, store()));
        make_store({});
    }
    [[nodiscard]] std::string store() const { return folder_.file("vfmgr.db"); }
    [[nodiscard]] Store open_store() const {
        auto opened = Store::open(store());
        if (!opened) throw std::runtime_error(opened.error().detail);
        return std::move(*opened);
    }
    void make_store(std::vector<Attachment> attachments) const {
        auto opened = open_store();
        Batch batch;
        batch.save_attachments = std::move(attachments);
        EXPECT_TRUE(opened.commit(batch));
    }
    // Empty: no VM has a VF; otherwise why not, and never a problem other than "refused".
    [[nodiscard]] std::string refusal() const {
        auto const answer = require_drained(options_, sources_);
        if (answer) return {};
        EXPECT_EQ(answer.error().problem, Problem::vf_in_use) << answer.error().detail;
        EXPECT_FALSE(answer.error().remedy.empty());
        return answer.error().detail;
    }

    TemporaryFolder folder_;
    Options options_;
    DrainSources sources_;
};

TEST_F(DrainedTest, TheStoreTellsForADaemonThatIsDown) {
    EXPECT_EQ(refusal(), "");
    make_store({attachment("shut-off")});
    EXPECT_EQ(refusal(), "VFs are attached to shut-off");
    sources_.vfio_holders = [] { return held_by("db1"); };
    EXPECT_EQ(refusal(), "VFs are attached to db1, shut-off");
}

TEST_F(DrainedTest, WhatADaemonThatWasKilledCommittedCounts) {
    {
        auto killed = open_store();
        Batch batch;
        batch.save_attachments = {attachment("shut-off")};
        ASSERT_TRUE(killed.commit(batch));
        for (auto const* const file : {"", "-wal"})  // as kill -9 leaves them
            std::filesystem::copy_file(store() + file, folder_.file("killed.db") + file);
    }
    ASSERT_GT(std::filesystem::file_size(folder_.file("killed.db-wal")), 0U);
    ASSERT_TRUE(leave_start_mark(sources_.start_mark, folder_.file("killed.db")));
    EXPECT_EQ(refusal(), "VFs are attached to shut-off");
    EXPECT_EQ(Store::open(folder_.file("killed.db")).value().load().value().attachments.size(), 1U);
}

TEST_F(DrainedTest, AStoreThatTellsNothingIsNoAnswer) {
    {
        auto const running = open_store();  // a vfmgrd that hangs
        EXPECT_THAT(refusal(), HasSubstr("another process has it open"));
    }
    std::filesystem::remove(store());
    EXPECT_THAT(refusal(), HasSubstr("cannot be opened"));
    EXPECT_FALSE(std::filesystem::exists(store())) << "nothing is made in passing";
    std::ofstream(store()) << "";
    EXPECT_THAT(refusal(), HasSubstr(store()));
    std::ofstream(store()) << std::string(5000, 'a');
    EXPECT_THAT(refusal(), HasSubstr("it is not a database"));
}

TEST_F(DrainedTest, AFullSocketIsNoAnswer) {
    auto const running = open_store();
    auto const connected = [&] {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        folder_.file("socket").copy(address.sun_path, sizeof address.sun_path - 1);
        return std::pair(FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), address);
    };
    auto const [listener, address] = connected();
    auto const [filling, same] = connected();
    auto const* const generic = reinterpret_cast<sockaddr const*>(&address);
    ASSERT_EQ(::bind(listener.get(), generic, sizeof address), 0);
    ASSERT_EQ(::listen(listener.get(), 0), 0);
    ASSERT_EQ(::connect(filling.get(), generic, sizeof address), 0) << std::strerror(errno);
    EXPECT_THAT(refusal(), HasSubstr("it is not known whether a VM has a VF"));
}

TEST_F(DrainedTest, HoldersThatCantBeSeenAreNoAnswer) {
    sources_.vfio_holders = [] {
        auto facts = nobody();
        facts.folders["/proc/1/fd"] = {{}, EACCES};
        return facts;
    };
    EXPECT_THAT(refusal(), HasSubstr("EACCES"));
}

TEST_F(DrainedTest, BeforeTheFirstStartOfABootHoldersDecideAlone) {
    make_store({attachment("starts-later")});
    std::filesystem::remove(sources_.start_mark);
    options_.host = local_context;
    EXPECT_EQ(refusal(), "") << "the drivers are not loaded at boot";
    sources_.vfio_holders = [] { return held_by("db1"); };
    EXPECT_EQ(refusal(), "VFs are attached to db1");
}

TEST_F(DrainedTest, AMarkThatIsNotUnderstoodIsNoBoot) {
    options_.host = local_context;
    for (auto const* const text : {"", "\n", "vfmgr.db\n", "/a\n/b\n", "/a"}) {
        std::ofstream(sources_.start_mark) << text;
        EXPECT_THAT(refusal(), HasSubstr("it is not known")) << text;
    }
    std::filesystem::remove(sources_.start_mark);
    std::filesystem::create_directory(sources_.start_mark);
    EXPECT_THAT(refusal(), HasSubstr("it is not known"));
}

TEST_F(DrainedTest, ANamedSocketIsAskedAlsoBeforeTheFirstStart) {
    std::filesystem::remove(sources_.start_mark);
    EXPECT_THAT(refusal(), HasSubstr("can't connect"));
    test::Api api;
    options_.host = "unix:" + api.socket();
    api.on("GET /v1/attachments", 200, {{"items", {{{"vm", "shut-off"}}}}});
    EXPECT_EQ(refusal(), "VFs are attached to shut-off");
}

TEST_F(DrainedTest, AnAnswerThatIsNoListIsNoAnswer) {
    std::filesystem::remove(sources_.start_mark);
    test::Api api;
    options_.host = "unix:" + api.socket();
    api.on("GET /v1/attachments", 200, nlohmann::json::array());
    api.on("GET /v1/attachments", 200, {{"items", nullptr}});
    EXPECT_THAT(refusal(), HasSubstr("is not a list"));
    EXPECT_THAT(refusal(), HasSubstr("is not a list"));
    api.refuse("GET /v1/attachments", {Problem::forbidden, "no permission", "ask an admin"});
    static_cast<void>(refusal());
    EXPECT_THAT(refusal(), HasSubstr("no permission"));
}

// Only another host's own daemon knows about it; this host's holders and store have no facts of it.
class DrainedFromAfar : public DrainedTest {
  protected:
    void serve(http::Limits const& limits = {}) {
        auto const certificate = folder_.file("cert.pem");
        ASSERT_TRUE(http::make_self_signed(certificate, folder_.file("key.pem"), {"127.0.0.1"}));
        auto const port = test::free_port();
        server_.emplace(limits);
        ASSERT_TRUE(server_->listen(
            http::TlsListen{"127.0.0.1", port, certificate, folder_.file("key.pem")},
            [](http::Request const&, http::Respond respond) {
                http::Response answer;
                answer.body = R"({"items": [], "next": null})";
                respond(answer);
            }));
        server_->start();
        options_.host = "https://127.0.0.1:" + std::to_string(port);
        options_.credentials.fingerprint = http::certificate_fingerprint(certificate).value();
    }
    std::optional<http::Server> server_;
};

TEST_F(DrainedFromAfar, ItsAnswerCounts) {
    serve();
    EXPECT_EQ(refusal(), "");
    sources_.vfio_holders = [] { return held_by("db1"); };
    EXPECT_EQ(refusal(), "") << "a VM of this host is none of that one";
}

TEST_F(DrainedFromAfar, AWrongFingerprintIsNoAnswer) {
    serve();
    options_.credentials.fingerprint = std::string(64, 'a');
    EXPECT_THAT(refusal(), HasSubstr("it is not known whether a VM has a VF"));
}

TEST_F(DrainedFromAfar, ConnectionsThatAreAllTakenAreNoAnswer) {
    http::Limits limits;
    limits.connections_max = 0;
    serve(limits);
    EXPECT_THAT(refusal(), HasSubstr("it is not known whether a VM has a VF"));
}

TEST_F(DrainedFromAfar, ADaemonThatIsDownIsNoAnswer) {
    options_.host = "https://127.0.0.1:" + std::to_string(test::free_port());
    EXPECT_THAT(refusal(), HasSubstr("can't connect"));
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_vfctl({"--host", options_.host, "drained"}), 4);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("can't connect"));
}

TEST_F(DrainedTest, RootReadsWhatVfmgrdLeftAsItsUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "this user can't become another one";
    make_store({attachment("train1")});
    EXPECT_THAT(refusal(), HasSubstr("train1"));
    // Now vfmgrd's user names a store that it can't read.
    constexpr uid_t nobody_uid = 65534;
    ASSERT_EQ(::chown(folder_.file("run").c_str(), nobody_uid, nobody_uid), 0);
    ASSERT_EQ(::chmod(store().c_str(), 0600), 0);
    EXPECT_THAT(refusal(), HasSubstr("it is not known whether a VM has a VF"));
    EXPECT_EQ(::geteuid(), 0u);
    // Its own store is read.
    for (auto const& file : std::filesystem::directory_iterator(folder_.file("")))
        ASSERT_EQ(::chown(file.path().c_str(), nobody_uid, nobody_uid), 0);
    ASSERT_EQ(::chown(folder_.file("").c_str(), nobody_uid, nobody_uid), 0);
    EXPECT_THAT(refusal(), HasSubstr("train1"));
}

}  // namespace
}  // namespace vfmgr
