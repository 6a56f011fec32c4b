// SPDX-License-Identifier: Apache-2.0
// What vf-guest has to do, from the host's desired state, what is configured and which netdevs
// exist. Pure.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "guest-tools/net/config_poll.hpp"
#include "guest-tools/net/configure.hpp"
#include "guest-tools/net/enrolment.hpp"
#include "guest-tools/net/kept_setup.hpp"
#include "guest-tools/net/vf_report.hpp"
#include "vfmgr/netlink/link.hpp"
#include "vfmgr/netlink/monitor.hpp"

namespace vfmgr::guest {

struct ToConfigure {
    GuestAttachment attachment;
    Netdev netdev;
    bool operator==(ToConfigure const&) const = default;
};

struct Work {
    std::vector<Configured> clean_up;  // first: an address may move to another attachment
    std::vector<ToConfigure> configure;
    std::vector<GuestAttachment> missing;  // no netdev with their MAC yet
    std::vector<GuestAttachment> ready;    // configured as desired
};

[[nodiscard]] Work compare(std::vector<GuestAttachment> const& desired,
                           std::vector<Configured> const& configured,
                           std::vector<Netdev> const& netdevs);

// Returns the VF's netdev, set up: now, if no other vf-guest has done so. Blocking.
[[nodiscard]] Result<std::string> ready_netdev(StateFolder const& state,
                                               GuestAttachment const& attachment);

// The same, as reach_host() takes it.
[[nodiscard]] SetUp set_up_in(StateFolder state);

// vf-guest up: brings every VF of this VM to the state that the host desires, runs the requested
// verifications, and cleans up after VFs that are gone. One thread besides ConfigPoll's.

// Prints one line for people about an event.
using Report = std::function<void(std::string const&)>;

class Resident {
  public:
    Resident(http::VsockTarget const& vsock, Enrolments enrolments, Records records, Report report)
        : vsock_(vsock),
          enrolments_(std::move(enrolments)),
          host_(vsock, enrolments_),
          records_(std::move(records)),
          report_(std::move(report)) {}

    // Applies one configuration from the host. Returns the Error of the first step that failed.
    // Updates the records after each change and each verification.
    [[nodiscard]] Result<void> once();
    // Runs until `stop_fd` is readable (a signalfd). The poll thread may then be in a request of
    // half a minute: the destructor waits for it; a process that ends need not.
    [[nodiscard]] Result<void> watch(int stop_fd);

  private:
    // all: nothing else is set up in this VM.
    enum class Extent { all, these };
    [[nodiscard]] Result<void> apply(std::vector<GuestAttachment> const& desired, Extent extent);
    void reach();
    void enrol_again();
    void take(Result<GuestConfig> config);
    void remark(std::string const& about, Result<void> const& done);
    void configure_one(ToConfigure const& one);
    void clean_up_one(Configured const& one);
    void verify_ready(std::vector<GuestAttachment> const& ready,
                      std::vector<Configured> const& configured);
    void note_missing(std::vector<GuestAttachment> const& missing);
    void give_up_on(GuestAttachment const& attachment, std::string netdev, Error const& error);
    void failed(std::string const& what, Error const& error);
    [[nodiscard]] Deadline next_due() const;
    [[nodiscard]] bool run_is_due(GuestAttachment const& attachment) const;

    http::VsockTarget vsock_;
    Enrolments enrolments_;
    HostEnds host_;
    std::vector<Enrolled> reached_;  // that host_ has
    Records records_;
    KeptSetup kept_ = kept_in_this_vm();
    Report report_;
    std::vector<GuestAttachment> desired_;
    std::set<std::string> runs_done_;
    std::map<std::string, Deadline> missing_until_;    // by run
    std::string last_failure_;                         // reported once, not at every try
    std::map<std::string, std::string> last_remarks_;  // the same, by subject
    std::optional<Error> first_error_;
    Deadline retry_at_ = Deadline::max();
    Deadline renew_at_ = Deadline::max();  // when keys are checked for their age
    std::unique_ptr<ConfigPoll> poll_;
};

}  // namespace vfmgr::guest
