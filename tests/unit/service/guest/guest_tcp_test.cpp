// SPDX-License-Identifier: Apache-2.0
// Guests on TCP, hostile ones too, over real TLS on the loopback device.
#include <netinet/in.h>

#include "tests/unit/service/guest/guestd_harness.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr::guestd_test {
namespace {

using testing::HasSubstr;

// Cases run at the same time, in processes of their own.
std::uint16_t const port = static_cast<std::uint16_t>(20000 + ::getpid() % 12000);
constexpr char const* token = "the token";

GuestVm on_tcp(std::string const& id, std::string const& address) {
    GuestVm guest{{"tcp:" + id, "vm-" + id, 0}, 0};
    guest.tcp = TcpGuest{"lo", *IpAddress::parse("127.0.0.1"), *IpAddress::parse(address), {}};
    guest.access.attachments = {an_attachment(id)};
    return guest;
}

class GuestTcp : public Guestd {
  protected:
    void SetUp() override {
        front.vms.vms["uuid-a"] = a_vm("a", 3);
        front.vms.vms["tcp:a1"] = on_tcp("a1", "127.0.0.11");
        front.vms.vms["tcp:b1"] = on_tcp("b1", "127.0.0.12");
        seams_tls_folder = folder.path();
        seams_tls_port = port;
        start_guestd();
        enrol = [this](VmIdentity const& vm, std::string const& secret) -> Result<GuestKey> {
            if (secret != token) return fail(Problem::unauthorized, "used", "make a new one");
            GuestKey const key{"key of " + vm.uuid, system_clock().now() + 1h};
            front.change([&](Front& now) {
                now.vms.vms.at(vm.uuid).tcp->keys = {{verify::digest_hex(key.key), key.expires_at}};
            });
            return key;
        };
        start_front_and_push();
    }

    [[nodiscard]] http::TlsTarget from(std::string address) {
        return {.host = "127.0.0.1",
                .port = port,
                .fingerprint = link->fingerprint().value_or(""),
                .local_address = std::move(address)};
    }
    http::Response call(std::string address, std::string const& key, std::string method,
                        std::string path, std::string body = {}) {
        http::Client client(from(std::move(address)));
        if (!key.empty()) client.set_bearer_token(key);
        http::Request request{std::move(method), std::move(path), {}, {}, {}, {}};
        if (!body.empty()) request.headers["content-type"] = "application/json";
        request.body = std::move(body);
        auto answer = client.send(request, 30s);
        return answer ? *answer : http::Response{.status = 0};
    }
    http::Response config_of(std::string const& address, std::string const& key) {
        return call(address, key, "GET", "/guest/v1/config");
    }
    std::string key_of(std::string const& address) {
        auto const answer = call(address, {}, "POST", "/guest/v1/enrolment",
                                 nlohmann::json(KeyRequest{token}).dump());
        EXPECT_EQ(answer.status, 201) << answer.body;
        return from_json_text<GuestKey>(answer.body).value_or(GuestKey{}).key;
    }

    test::TemporaryFolder const folder;
};

TEST_F(GuestTcp, AGuestReadsItsOwnAttachmentByItsKey) {
    auto const key = key_of("127.0.0.11");
    auto const answer = config_of("127.0.0.11", key);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("\"a1\""));
    EXPECT_EQ(config_of("127.0.0.12", key_of("127.0.0.12")).status, 200);
}

TEST_F(GuestTcp, NobodyElseIsServed) {
    auto const key = key_of("127.0.0.11");
    EXPECT_EQ(config_of("127.0.0.12", key).status, 401) << "the right key from another VF";
    EXPECT_EQ(config_of("127.0.0.13", key).status, 404) << "from no VF at all";
    EXPECT_EQ(config_of("127.0.0.11", "nonsense").status, 401);
    EXPECT_EQ(config_of("127.0.0.11", {}).status, 401);
    auto const wrong = nlohmann::json(KeyRequest{"used before"}).dump();
    EXPECT_EQ(call("127.0.0.11", {}, "POST", "/guest/v1/enrolment", wrong).status, 401);
    auto const stranger = nlohmann::json(KeyRequest{token}).dump();
    EXPECT_EQ(call("127.0.0.13", {}, "POST", "/guest/v1/enrolment", stranger).status, 404);
}

TEST_F(GuestTcp, AVmOnVsockHasNoKey) {
    auto const asked = nlohmann::json(KeyRequest{token}).dump();
    EXPECT_EQ(ask(3, "POST", "/guest/v1/enrolment", asked).status, 409);
}

TEST_F(GuestTcp, AKeyThatExpiredIsNone) {
    auto const key = key_of("127.0.0.11");
    change([](Front& now) {
        now.vms.vms.at("tcp:a1").tcp->keys.at(0).until = system_clock().now() - 1s;
    });
    EXPECT_EQ(config_of("127.0.0.11", key).status, 401);
}

TEST_F(GuestTcp, TheEndOfAnAttachmentEndsWhatItsGuestWaitsFor) {
    auto const key = key_of("127.0.0.11");
    auto const other = key_of("127.0.0.12");
    auto waiting = std::async(std::launch::async, [&] {
        http::Client client(from("127.0.0.11"));
        client.set_bearer_token(key);
        http::Request request{
            "GET", "/guest/v1/config", {{"wait", "60"}, {"revision", "1"}}, {}, {}, {}};
        auto const now = client.send(request, 30s);
        auto const revision = from_json_text<GuestConfig>(now->body)->revision;
        request.query["revision"] = std::to_string(revision);
        return client.send(request, 60s);
    });
    for (auto const until = std::chrono::steady_clock::now() + 20s;
         !link->guest_waits("tcp:a1") && std::chrono::steady_clock::now() < until;)
        std::this_thread::yield();
    change([](Front& now) { now.vms.vms.erase("tcp:a1"); });
    auto const ended = waiting.get();
    EXPECT_TRUE(!ended || ended->status != 200);
    EXPECT_EQ(config_of("127.0.0.11", key).status, 404);
    EXPECT_EQ(config_of("127.0.0.12", other).status, 200) << "the other guest goes on";
}

TEST_F(GuestTcp, WithoutGuestsNothingListens) {
    change([](Front& now) {
        now.vms.vms.erase("tcp:a1");
        now.vms.vms.erase("tcp:b1");
    });
    for (auto const until = std::chrono::steady_clock::now() + 20s;
         config_of("127.0.0.11", "x").status != 0 && std::chrono::steady_clock::now() < until;)
        std::this_thread::yield();
    EXPECT_EQ(config_of("127.0.0.11", "x").status, 0);
}

TEST_F(GuestTcp, AGuestHasOnlyItsShare) {
    auto const key = key_of("127.0.0.11");
    auto const other = key_of("127.0.0.12");
    int refused = 0;
    for (int i = 0; i < 60; ++i)
        if (config_of("127.0.0.11", key).status == 503) ++refused;
    EXPECT_GT(refused, 0) << "as on vsock";
    EXPECT_EQ(config_of("127.0.0.12", other).status, 200);
    auto const huge = std::string(1 << 20, ' ');
    EXPECT_NE(call("127.0.0.12", other, "POST", "/guest/v1/enrolment", huge).status, 201);
}

// Each holds a place of its own address, not of others, and only for a while.
TEST_F(GuestTcp, SilentConnectionsTakeNobodysPlace) {
    auto const other = key_of("127.0.0.12");
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 40; ++i) {
        silent.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(0x7f00000b);  // 127.0.0.11
        ASSERT_EQ(::bind(silent.back().get(), reinterpret_cast<sockaddr const*>(&address),
                         sizeof address),
                  0);
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        static_cast<void>(::connect(silent.back().get(),
                                    reinterpret_cast<sockaddr const*>(&address), sizeof address));
    }
    EXPECT_EQ(config_of("127.0.0.12", other).status, 200);
}

}  // namespace
}  // namespace vfmgr::guestd_test
