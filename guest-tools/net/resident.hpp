// SPDX-License-Identifier: Apache-2.0
// vf-guest up: brings every VF of this VM to what the host wants, runs the verifications that are
// wanted, and cleans up after VFs that went. One thread besides ConfigPoll's.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "guest-tools/net/config_poll.hpp"
#include "guest-tools/net/kept_setup.hpp"
#include "guest-tools/net/reconcile.hpp"
#include "guest-tools/net/records.hpp"
#include "vfmgr/netlink/monitor.hpp"

namespace vfmgr::guest {

// One line for people, about something that happened.
using Tell = std::function<void(std::string const&)>;

class Resident {
  public:
    Resident(http::Target const& host, Records records, Tell tell)
        : target_(host), host_(host), records_(std::move(records)), tell_(std::move(tell)) {}

    // One configuration from the host, done. The Error of the first thing that failed. What is on
    // record follows each change and each verification.
    [[nodiscard]] Result<void> once();
    // Until `stop_fd` is readable (a signalfd). The poll thread may be in a request of half a
    // minute then: the destructor waits for it, a process that ends need not.
    [[nodiscard]] Result<void> watch(int stop_fd);

  private:
    [[nodiscard]] Result<void> apply(std::vector<GuestAttachment> const& wanted);
    void take(Result<GuestConfig> config);
    void remark(std::string const& about, Result<void> const& done);
    void configure_one(ToConfigure const& one);
    void clean_up_one(Configured const& one);
    void verify_ready(std::vector<GuestAttachment> const& ready,
                      std::vector<Configured> const& configured);
    void note_missing(std::vector<GuestAttachment> const& missing);
    void give_up_on(GuestAttachment const& attachment);
    void report_failure(GuestAttachment const& attachment, std::string netdev, Error const& error);
    void failed(std::string const& what, Error const& error);
    [[nodiscard]] int poll_milliseconds() const;
    [[nodiscard]] bool run_is_due(GuestAttachment const& attachment) const;

    http::Target target_;
    HostClient host_;
    Records records_;
    KeptSetup kept_ = kept_in_this_vm();
    Tell tell_;
    std::vector<GuestAttachment> wanted_;
    std::set<std::string> runs_done_;
    std::map<std::string, Deadline> missing_until_;    // by run
    std::string last_failure_;                         // told once, not at every try
    std::map<std::string, std::string> last_remarks_;  // the same, by what they are about
    std::optional<Error> first_error_;
    Deadline retry_at_ = Deadline::max();
    std::unique_ptr<ConfigPoll> poll_;
};

}  // namespace vfmgr::guest
