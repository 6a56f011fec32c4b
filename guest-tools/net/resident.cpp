// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/resident.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "guest-tools/net/configure.hpp"
#include "guest-tools/net/find_vf.hpp"
#include "guest-tools/net/run_tests.hpp"

namespace vfmgr::guest {
namespace {

bool is_as_desired(Configured const& configured, GuestAttachment const& desired,
                   Netdev const& netdev) {
    return configured.mac == desired.mac && configured.guid == desired.guid &&
           configured.ifindex == netdev.ifindex && configured.ifname == netdev.name &&
           configured.address == desired.address &&
           configured.prefix_length == desired.prefix_length && configured.mtu == desired.mtu &&
           configured.complete && netdev.up && netdev.mtu == desired.mtu;
}

}  // namespace

Work compare(std::vector<GuestAttachment> const& desired, std::vector<Configured> const& configured,
             std::vector<Netdev> const& netdevs) {
    Work work;
    for (auto const& attachment : desired) {
        auto const* const netdev = find_vf(netdevs, attachment);
        auto const had =
            std::ranges::find(configured, attachment.attachment, &Configured::attachment);
        bool const known = had != configured.end();
        if (netdev && known && is_as_desired(*had, attachment, *netdev)) {
            work.ready.push_back(attachment);
            continue;
        }
        if (known) work.clean_up.push_back(*had);
        if (netdev)
            work.configure.push_back({attachment, *netdev});
        else
            work.missing.push_back(attachment);
    }
    for (auto const& old : configured)
        if (std::ranges::find(desired, old.attachment, &GuestAttachment::attachment) ==
            desired.end())
            work.clean_up.push_back(old);
    return work;
}

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kernel_time{10};
constexpr std::chrono::seconds configure_time{30};
constexpr std::chrono::seconds udev_time{5};
constexpr std::chrono::seconds netdev_time{30};  // from the request to the VF's netdev
constexpr std::chrono::seconds retry_time{15};
constexpr std::chrono::seconds enrolment_check_time{15};
constexpr std::chrono::hours renewal_check_time{1};
constexpr std::size_t runs_remembered_max = 256;

}  // namespace

void Resident::failed(std::string const& what, Error const& error) {
    if (!first_error_) first_error_ = error;
    auto const line = fmt::format("{}: {}", what, in_one_line(error));
    if (line != last_failure_) report_(line);
    last_failure_ = line;
}

bool Resident::run_is_due(GuestAttachment const& attachment) const {
    return attachment.run && !runs_done_.contains(*attachment.run);
}

// Reports a failure once. A VF that is not kept across a reboot, has another name or whose report
// is not kept still works.
void Resident::remark(std::string const& about, Result<void> const& done) {
    if (done) return;
    auto& last = last_remarks_[about];
    auto const line = in_one_line(done.error());
    if (line != last) report_(line);
    last = line;
}

void Resident::configure_one(ToConfigure const& one) {
    auto const& attachment = one.attachment;
    remark("udev", await_udev("/run", one.netdev.ifindex, Steady::now() + udev_time));
    auto const done =
        configure(attachment, one.netdev, records_.state, Steady::now() + configure_time);
    if (done)
        return report_(fmt::format("configured {}: {}/{}, MTU {}, RDMA device {}", done->ifname,
                                   to_string(done->address), done->prefix_length, done->mtu,
                                   done->rdma_device.empty() ? "none" : done->rdma_device));
    retry_at_ = Steady::now() + retry_time;
    give_up_on(attachment, one.netdev.name, done.error());
}

// A run that can't even begin ends with the reason; the host's verdict on it is kept like any
// other.
void Resident::give_up_on(GuestAttachment const& attachment, std::string netdev,
                          Error const& error) {
    failed(fmt::format("attachment {}", attachment.attachment), error);
    if (!run_is_due(attachment)) return;
    runs_done_.insert(*attachment.run);
    auto verdict = host_.of(attachment.attachment).report_error(attachment, error);
    if (!verdict) return failed("the failure could not be reported to the host", verdict.error());
    remark("report", record(records_, {std::move(*verdict), std::move(netdev), {}, {}}));
}

void Resident::clean_up_one(Configured const& one) {
    auto const done = clean_up(one, records_.state, Steady::now() + kernel_time);
    if (done)
        return report_(fmt::format("removed the set-up of {} ({})", one.ifname, one.attachment));
    failed(fmt::format("removing the set-up of {}", one.ifname), done.error());
    retry_at_ = Steady::now() + retry_time;
}

void Resident::verify_ready(std::vector<GuestAttachment> const& ready,
                            std::vector<Configured> const& configured) {
    for (auto const& attachment : ready) {
        if (!run_is_due(attachment)) continue;
        auto const found =
            std::ranges::find(configured, attachment.attachment, &Configured::attachment);
        if (found == configured.end()) continue;
        if (runs_done_.size() >= runs_remembered_max) runs_done_.clear();
        runs_done_.insert(*attachment.run);
        auto const report = run_tests(guest_plane(host_.of(attachment.attachment), attachment),
                                      {attachment, found->ifname},
                                      verify::measurements_of(own_tests(), attachment.profile));
        if (!report) {
            failed(fmt::format("verification {}", *attachment.run), report.error());
            continue;
        }
        auto const& verification = report->verification;
        report_(fmt::format("verification {} of {}: {}{}{}", verification.run, found->ifname,
                            enum_name(verification.verdict),
                            verification.detail.empty() ? "" : ", ", verification.detail));
        remark("report", record(records_, *report));
    }
}

// A VF that was just plugged in needs time to appear. A run that waits for one that never appears
// must end with the reason.
void Resident::note_missing(std::vector<GuestAttachment> const& missing) {
    std::map<std::string, Deadline> still;
    for (auto const& attachment : missing) {
        // Nothing else loads it where no network service asks for IPoIB.
        if (attachment.guid)
            remark("ib_ipoib", need_module("/sys", "ib_ipoib", Steady::now() + kernel_time));
        if (!run_is_due(attachment)) continue;
        auto const known = missing_until_.find(*attachment.run);
        auto const until =
            known == missing_until_.end() ? Steady::now() + netdev_time : known->second;
        if (until > Steady::now())
            still[*attachment.run] = until;
        else
            give_up_on(attachment, {}, no_netdev(attachment));
    }
    missing_until_ = std::move(still);
}

Result<void> Resident::apply(std::vector<GuestAttachment> const& desired, Extent extent) {
    if (extent == Extent::all) {
        remark("report", records_.reports.keep_only(desired));
        // Comes first: a service that handles a new netdev then finds its description.
        remark("set-up", kept_.keep_only(desired));
    }
    for (auto const& attachment : desired) remark("set-up", kept_.keep(attachment));
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, Steady::now() + kernel_time));
    retry_at_ = Deadline::max();
    auto had = records_.state.load();
    if (extent == Extent::these)
        std::erase_if(had, [&](Configured const& one) {
            return std::ranges::find(desired, one.attachment, &GuestAttachment::attachment) ==
                   desired.end();
        });
    auto const work = compare(desired, had, netdevs);
    for (auto const& one : work.clean_up) clean_up_one(one);
    for (auto const& one : work.configure) configure_one(one);
    note_missing(work.missing);
    VFMGR_TRY(auto const now, list_netdevs(socket, Steady::now() + kernel_time));
    auto const configured = records_.state.load();
    verify_ready(compare(desired, configured, now).ready, configured);
    return {};
}

// The VFs come first: over them the host is reached.
void Resident::reach() {
    host_ = reach_host(vsock_, enrolments_, set_up_in(records_.state),
                       [this](std::string const& attachment, Result<void> const& done) {
                           remark("attachment " + attachment, done);
                       });
    reached_ = enrolments_.kept();
}

// An enrolment may come while this runs, and a key be refused or its time half over.
void Resident::enrol_again() {
    bool const pending = !enrolments_.pending().empty();
    auto const half = Steady::now() >= renew_at_;
    if (!pending && !half && reached_ == enrolments_.kept()) return;
    if (half) renew_at_ = Steady::now() + renewal_check_time;
    reach();
    poll_->use(host_);
}

Result<void> Resident::once() {
    reach();
    VFMGR_TRY(auto const config, host_.config(std::chrono::seconds(0), 0));
    VFMGR_CHECK(apply(config.attachments, Extent::all));
    if (first_error_) return fail(*first_error_);
    return write_metrics(records_);
}

Deadline Resident::next_due() const {
    auto next = std::min(retry_at_, Steady::now() + std::chrono::hours(1));
    for (auto const& [run, until] : missing_until_) next = std::min(next, until);
    // A file in /etc reports nothing when it comes, and fw_cfg's when its module is loaded.
    return std::min(next, Steady::now() + enrolment_check_time);
}

void Resident::take(Result<GuestConfig> config) {
    if (!config) return failed("the configuration can't be read from the host", config.error());
    last_failure_.clear();
    desired_ = std::move(config->attachments);
}

Result<std::string> ready_netdev(StateFolder const& state, GuestAttachment const& attachment) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, Steady::now() + kernel_time));
    auto const work = compare({attachment}, state.load(), netdevs);
    if (!work.ready.empty()) return find_vf(netdevs, attachment)->name;
    if (work.configure.empty()) return fail(no_netdev(attachment));
    auto const& one = work.configure.front();
    VFMGR_TRY(auto const configured,
              configure(one.attachment, one.netdev, state, Steady::now() + configure_time));
    return configured.ifname;
}

SetUp set_up_in(StateFolder state) {
    return [state = std::move(state)](GuestAttachment const& attachment) -> Result<void> {
        VFMGR_CHECK(ready_netdev(state, attachment));
        return {};
    };
}

Result<void> Resident::watch(int stop_fd) {
    // Precedes the first observation, to miss no change.
    VFMGR_TRY(auto monitor, EventMonitor::open());
    reach();
    renew_at_ = Steady::now() + renewal_check_time;
    VFMGR_TRY(poll_, ConfigPoll::start(host_));
    bool known = false;  // nothing is cleaned up before the host's first answer
    while (true) {
        auto const events = monitor.fds();
        VFMGR_CHECK(
            await_readable(std::array{stop_fd, poll_->fd(), events[0], events[1]}, next_due()));
        if (is_readable(stop_fd)) return {};
        VFMGR_CHECK(monitor.wait(Steady::now()));
        if (auto config = poll_->take()) {
            known = known || config->has_value();
            take(std::move(*config));
        }
        enrol_again();
        auto const desired = enrolments_.with_attachments(desired_);
        if (!known && desired.empty()) continue;
        auto const extent = known ? Extent::all : Extent::these;
        if (auto const applied = apply(desired, extent); !applied) {
            failed("the kernel's network devices can't be read", applied.error());
            retry_at_ = Steady::now() + retry_time;
        }
        remark("metrics", write_metrics(records_));
    }
}

}  // namespace vfmgr::guest
