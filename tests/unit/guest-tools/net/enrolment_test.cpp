// SPDX-License-Identifier: Apache-2.0
// Enrolments of a VM: the files they come in, the key that is kept, and the host at the other end.
#include "guest-tools/net/enrolment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>

#include "api/types/json.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::guest {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr http::VsockTarget nowhere{.cid = 1, .port = 1};

// A host with one guest on TCP.
class Host {
  public:
    explicit Host(std::string const& folder) {
        http::TlsListen where{.address = "127.0.0.1",
                              .port = port(),
                              .certificate_file = folder + "/host.crt",
                              .key_file = folder + "/host.key"};
        EXPECT_TRUE(
            http::make_self_signed(where.certificate_file, where.key_file, {"vfmgr-guestd"}));
        fingerprint = http::certificate_fingerprint(where.certificate_file).value();
        EXPECT_TRUE(server_.listen(where, [this](http::Request request, http::Respond respond) {
            respond(answer(request));
        }));
        server_.start();
    }
    ~Host() { server_.stop(); }
    Host(Host const&) = delete;
    Host& operator=(Host const&) = delete;

    static std::uint16_t port() { return static_cast<std::uint16_t>(20000 + ::getpid() % 12000); }
    std::string fingerprint;
    std::atomic<int> enrolled = 0;
    std::atomic<bool> ended = false;
    std::chrono::hours key_time{24 * 30};

  private:
    http::Response answer(http::Request const& request) {
        std::lock_guard const lock(mutex_);
        auto const refused =
            http::problem_response(Error{Problem::unauthorized, "no", "make a new one"}, request);
        auto const& header = request.headers;
        bool const knows = header.contains("authorization") &&
                           header.at("authorization") == "Bearer " + key_ && !key_.empty();
        if (ended) return refused;
        if (request.path == "/guest/v1/enrolment") {
            auto const secret = from_json_text<KeyRequest>(request.body).value().secret;
            if (secret != token_ && (secret != key_ || !knows)) return refused;
            token_.clear();
            key_ = "key" + std::to_string(++enrolled);
            return http::json_response(201,
                                       GuestKey{key_, std::chrono::system_clock::now() + key_time});
        }
        if (!knows) return refused;
        return http::json_response(200, GuestConfig{7, {}});
    }

    std::mutex mutex_;
    std::string token_ = "token", key_;
    http::Server server_{http::Limits{}};
};

class EnrolmentTest : public testing::Test {
  protected:
    [[nodiscard]] Enrolment enrolment(std::string token = "token") const {
        Enrolment made;
        made.attachment.attachment = "aaaa0001";
        made.attachment.mac = MacAddress::parse("52:54:00:11:22:33").value();
        made.attachment.address = IpAddress::parse("127.0.0.11").value();
        made.attachment.responder = IpAddress::parse("127.0.0.1").value();
        made.port = Host::port();
        made.fingerprint = host.fingerprint;
        made.token = std::move(token);
        // As it is read from a file: milliseconds.
        made.expires_at =
            std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now() + 1h);
        return made;
    }
    void deliver(std::filesystem::path const& file, Enrolment const& made) const {
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << to_json_text(made);
    }
    [[nodiscard]] HostEnds reach() {
        return reach_host(
            nowhere, enrolments,
            [this](GuestAttachment const& attachment) {
                set_up.push_back(attachment.attachment);
                return Result<void>();
            },
            [this](std::string const&, Result<void> const& done) {
                if (!done) failures.push_back(done.error().detail);
            });
    }

    test::TemporaryFolder const folder;
    Host host{folder.path()};
    EnrolmentPlaces const places{folder.file("fw_cfg"), folder.file("etc"), folder.file("keys"),
                                 folder.file("virtio")};
    Enrolments const enrolments{places};
    std::vector<std::string> set_up, failures;
};

TEST_F(EnrolmentTest, ComesByFwCfgOrAsAFile) {
    EXPECT_THAT(enrolments.pending(), IsEmpty());
    auto const one = enrolment("one"), two = enrolment("two");
    deliver(places.fw_cfg / "enrolment/raw", one);
    deliver(places.etc / "enrolment.json", two);
    std::ofstream(places.etc / "other.json") << to_json_text(one);
    std::ofstream(places.etc / "enrolment-broken.json") << "{";
    EXPECT_THAT(enrolments.pending(), ElementsAre(one, two));
}

TEST_F(EnrolmentTest, TheVfIsSetUpBeforeTheTokenIsShown) {
    deliver(places.etc / "enrolment.json", enrolment());
    auto const broken = reach_host(
        nowhere, enrolments,
        [](GuestAttachment const&) { return Result<void>(fail(Problem::not_found, "no VF", "")); },
        [](std::string const&, Result<void> const&) {});
    EXPECT_EQ(host.enrolled, 0);
    auto ends = reach();
    EXPECT_THAT(set_up, ElementsAre("aaaa0001"));
    EXPECT_THAT(failures, IsEmpty());
    EXPECT_EQ(ends.config(0s, 0).value().revision, 7U);
    EXPECT_THAT(enrolments.pending(), IsEmpty());
}

TEST_F(EnrolmentTest, TheKeyIsGoodOverAReboot) {
    deliver(places.etc / "enrolment.json", enrolment());
    static_cast<void>(reach());
    struct stat status{};
    ASSERT_EQ(::stat((places.keys / "aaaa0001.json").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    std::filesystem::remove_all(places.etc);
    EXPECT_TRUE(reach().config(0s, 0)) << "without the token";
    EXPECT_EQ(host.enrolled, 1);
    EXPECT_THAT(set_up, ElementsAre("aaaa0001", "aaaa0001")) << "the VF first, each time";
}

TEST_F(EnrolmentTest, AKeyIsRenewedInTheSecondHalfOfItsTime) {
    deliver(places.etc / "enrolment.json", enrolment());
    host.key_time = std::chrono::hours{24 * 14};
    static_cast<void>(reach());
    EXPECT_TRUE(reach().config(0s, 0));
    EXPECT_EQ(host.enrolled, 2);
}

TEST_F(EnrolmentTest, AnotherHostsCertificateGetsNoToken) {
    auto wrong = enrolment();
    wrong.fingerprint = std::string(64, 'a');
    deliver(places.etc / "enrolment.json", wrong);
    static_cast<void>(reach());
    EXPECT_EQ(host.enrolled, 0);
    EXPECT_EQ(failures.size(), 1U);
}

TEST_F(EnrolmentTest, ATokenThatIsRefusedIsNotShownAgain) {
    deliver(places.etc / "enrolment.json", enrolment("used"));
    static_cast<void>(reach());
    EXPECT_EQ(failures.size(), 1U);
    static_cast<void>(reach());
    EXPECT_EQ(failures.size(), 1U);
}

TEST_F(EnrolmentTest, TheEndOfTheAttachmentEndsTheKey) {
    deliver(places.etc / "enrolment.json", enrolment());
    auto ends = reach();
    host.ended = true;
    EXPECT_THAT(ends.config(0s, 0).value().attachments, IsEmpty());
    EXPECT_THAT(enrolments.with_attachments({}), IsEmpty());
}

TEST_F(EnrolmentTest, AnExpiredTokenIsLeftAlone) {
    auto old = enrolment();
    old.expires_at -= 2h;
    deliver(places.etc / "enrolment.json", old);
    EXPECT_THAT(enrolments.with_attachments({}), IsEmpty());
}

}  // namespace
}  // namespace vfmgr::guest
