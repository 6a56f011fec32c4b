// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/host_client.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::guest {
namespace {

// A host that has attached nothing, and counts its requests.
class QuietHost {
  public:
    QuietHost() {
        auto const listening =
            server_.listen(http::UnixListen{folder_.file("socket"), {}, 0600},
                           [this](http::Request const&, http::Respond const& respond) {
                               ++asked_;
                               respond({.body = R"({"revision": 1, "attachments": []})"});
                           });
        EXPECT_TRUE(listening);
        server_.start();
    }
    ~QuietHost() { server_.stop(); }
    QuietHost(QuietHost const&) = delete;
    QuietHost& operator=(QuietHost const&) = delete;
    [[nodiscard]] http::Target target() const { return http::UnixTarget{folder_.file("socket")}; }
    [[nodiscard]] int asked() const { return asked_; }

  private:
    test::TemporaryFolder const folder_;
    std::atomic<int> asked_ = 0;
    http::Server server_{http::Limits{}};
};

// Several verifications at once have a client each, and the host limits the VM's requests in total.
TEST(HostClient, CopiesTogetherAskNoFasterThanTheHostAllows) {
    QuietHost const host;
    HostClient first(host.target());
    HostClient second = first;
    auto const start = std::chrono::steady_clock::now();
    for (int i = 0; i < 12; ++i)
        for (auto* client : {&first, &second})
            ASSERT_TRUE(client->config(std::chrono::seconds(0), 0)) << i;
    // 20 at once, then 4 a second.
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(990));
    EXPECT_EQ(host.asked(), 24);
}

}  // namespace
}  // namespace vfmgr::guest
