// SPDX-License-Identifier: Apache-2.0
// The front's end of the broker's socket: both seams, performed by the broker. systemd keeps the
// socket and starts a broker that has ended. What such a broker was asked is asked again: a step
// whose effect is already there succeeds, and a worker that is still at it is waited for. Any
// thread may call.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "api/os/descriptor.hpp"
#include "api/os/message_lines.hpp"
#include "service/broker/messages.hpp"

namespace vfmgr::broker {

struct LinkTimes {
    std::chrono::milliseconds observe{60'000};  // the broker's own limits are shorter
    // For the answer, beyond a request's own time: the broker first lets a step end that an earlier
    // front asked for.
    std::chrono::milliseconds grace = longest_kernel_step + std::chrono::seconds{10};
    std::chrono::milliseconds greeting{20'000};  // for systemd to start a broker
};
// A request that so many brokers have ended at is not asked again.
inline constexpr int brokers_per_request_max = 3;

class Link {
  public:
    // `on_news` is called when something has changed, or may have while no broker was there: from a
    // thread of this class or of a caller of ask(), which it must not block.
    Link(std::string socket_path, std::function<void(News)> on_news, LinkTimes times = {});
    ~Link();
    Link(Link const&) = delete;
    Link& operator=(Link const&) = delete;

    // The broker's own error; timed_out when it does not answer by the deadline; unavailable when
    // there is none.
    [[nodiscard]] Result<Answer> ask(Request request, Deadline deadline);
    [[nodiscard]] LinkTimes const& times() const { return times_; }

  private:
    struct Connection {
        FileDescriptor socket;
        std::mutex sending;  // keeps requests apart
        Answers<Answer> answers;
        std::thread receiver;
        ~Connection();
    };

    [[nodiscard]] Result<std::shared_ptr<Connection>> connected();
    [[nodiscard]] Result<std::shared_ptr<Connection>> connect() const;
    [[nodiscard]] static std::optional<Answer> ask_once(Connection& connection, Request& request,
                                                        Deadline deadline);

    std::string const path_;
    std::function<void(News)> const on_news_;
    LinkTimes const times_;
    std::mutex mutex_;  // guards the connection; held while it is made
    std::shared_ptr<Connection> connection_;
};

// A bundle.
[[nodiscard]] Result<std::string> collect(Link& link, Call what);

class BrokerKernel final : public Kernel {
  public:
    explicit BrokerKernel(Link& link) : link_(link) {}
    [[nodiscard]] Result<KernelView> observe(KernelScope const& scope) override;
    [[nodiscard]] Result<Observed> perform(KernelStep const& step, Deadline deadline) override;
    [[nodiscard]] Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override;
    [[nodiscard]] Result<std::vector<PfTraffic>> read_traffic(
        std::optional<PciAddress> const& pf) override;

  private:
    Link& link_;
};

class BrokerHypervisor final : public Hypervisor {
  public:
    explicit BrokerHypervisor(Link& link) : link_(link) {}
    [[nodiscard]] Result<HypervisorView> observe(HypervisorScope const& scope) override;
    [[nodiscard]] Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override;
    [[nodiscard]] Result<void> settle(std::string const& vm_uuid, Deadline deadline) override;

  private:
    Link& link_;
};

}  // namespace vfmgr::broker
