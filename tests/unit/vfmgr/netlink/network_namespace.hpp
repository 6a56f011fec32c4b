// SPDX-License-Identifier: Apache-2.0
// A network made by the test: a fresh network namespace, veth pairs in it. Owned by the test; the
// thread that made it, and threads that it starts afterwards, are inside until the test ends.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "api/os/descriptor.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::test {

inline Deadline soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(10);
}

// Root must get a namespace; for other users the test is skipped, with a hint to run as root.
class NeedsNetworks : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    }
};

class Networked : public NeedsNetworks {
  protected:
    void SetUp() override {
        NeedsNetworks::SetUp();
        if (IsSkipped()) return;
        outside_ = FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << "unshare: " << std::strerror(errno);
    }
    // Later tests may need the machine's loopback device.
    void TearDown() override {
        if (!outside_) return;
        EXPECT_EQ(::setns(outside_.get(), CLONE_NEWNET), 0) << "setns: " << std::strerror(errno);
    }

  private:
    FileDescriptor outside_;
};

struct VethNames {
    std::string near;
    std::string far;
};

inline Result<void> make_veth(NlSocket& socket, VethNames const& names) {
    NlRequest request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    request.header(ifinfomsg{}).put_text(IFLA_IFNAME, names.near);
    request.nest(IFLA_LINKINFO, [&](NlRequest& info) {
        info.put_text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, [&](NlRequest& data) {
            data.nest(VETH_INFO_PEER, [&](NlRequest& peer) {
                peer.header(ifinfomsg{}).put_text(IFLA_IFNAME, names.far);
            });
        });
    });
    VFMGR_TRY(auto const ack, socket.request(request, "RTM_NEWLINK veth", soon()));
    if (ack.ok()) return {};
    return fail(nl_refusal(ack, "RTM_NEWLINK veth", "no veth pair could be made", ""));
}

// Bytes as a kernel would send them, for parsers.
class Bytes {
  public:
    template <class T>
    Bytes& add(T const& object) {
        auto const view = bytes_of(object);
        bytes_.insert(bytes_.end(), view.begin(), view.end());
        return *this;
    }
    Bytes& attribute(int type, ByteView value) {
        std::uint16_t const length = static_cast<std::uint16_t>(value.size() + 4);
        add(length).add(static_cast<std::uint16_t>(type));
        bytes_.insert(bytes_.end(), value.begin(), value.end());
        while (bytes_.size() % 4 != 0) bytes_.push_back(std::byte{0});
        return *this;
    }
    template <class T>
        requires std::is_trivially_copyable_v<T>
    Bytes& put(int type, T const& value) {
        return attribute(type, bytes_of(value));
    }
    Bytes& text(int type, std::string const& value) {
        return attribute(type, std::as_bytes(std::span(value.c_str(), value.size() + 1)));
    }
    Bytes& nest(int type, Bytes const& inside) { return attribute(type, inside.view()); }
    [[nodiscard]] ByteView view() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

}  // namespace vfmgr::test
