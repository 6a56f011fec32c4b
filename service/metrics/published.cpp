// SPDX-License-Identifier: Apache-2.0
#include "service/metrics/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "service/routes/vf_views.hpp"
#include "vfmgr/plan/drift.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

double seconds_of(Time time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

MetricLabels of(PciAddress const& pf) {
    return {{"pf", to_string(pf)}};
}

MetricLabels of(VfId const& vf) {
    return {{"pf", to_string(vf.pf)}, {"vf", fmt::format("{}", vf.index)}};
}

MetricLabels with(MetricLabels labels, std::string name, std::string value) {
    labels.push_back({std::move(name), std::move(value)});
    return labels;
}

void add_host(Snapshot const& now, MetricFamilies& all) {
    auto libvirt = Family::gauge("vfmgr_libvirt_up", "1 while libvirt answers vfmgrd.");
    libvirt.add({}, !now.host->hypervisor.stale);
    auto store = Family::gauge("vfmgr_store_writable",
                               "0 while vfmgrd's store can't be written: vfmgrd changes nothing.");
    store.add({}, !now.store_refuses);
    auto vms = Family::gauge("vfmgr_vms", "VMs of this host, running or not.");
    vms.add({}, now.host->hypervisor.vms.size());
    for (auto* const each : {&libvirt, &store, &vms}) std::move(*each).move_into(all);
}

MetricLabels info_of(PfInfo const& info, DesiredState const& desired) {
    auto const managed = desired.pfs.find(info.pci);
    auto const mode = managed == desired.pfs.end() ? PfMode::observe : managed->second.spec.mode;
    auto labels = of(info.pci);
    for (auto const& [name, value] :
         {std::pair("ifname", info.ifname), std::pair("driver", info.driver),
          std::pair("link_layer", label_of(info.link_layer)), std::pair("mode", label_of(mode))})
        labels.push_back({name, value});
    return labels;
}

// Where a PF that vfmgr knows is missing, it still has a series: an alert needs one.
void add_standing(Snapshot const& now, MetricFamilies& all) {
    auto present = Family::gauge("vfmgr_pf_present",
                                 "0 for a PF that is configured or in use and not at its address.");
    std::vector<PciAddress> known = kept_pfs(*now.desired);
    for (auto const& [pci, pf] : now.host->kernel.pfs) known.push_back(pci);
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    for (auto const& pci : known) {
        auto const is = standing_of(now.host->kernel, *now.desired, pci).is;
        present.add(of(pci), is != Standing::gone && is != Standing::renumbered);
    }
    std::move(present).move_into(all);
}

void add_pfs(Snapshot const& now, MetricFamilies& all) {
    auto info = Family::gauge("vfmgr_pf_info", "What each PF is, and vfmgr's mode for it.");
    auto readable = Family::gauge("vfmgr_pf_readable", "1 while the PF can be read.");
    auto stuck = Family::gauge("vfmgr_pf_stuck",
                               "1 while an operation on the PF hangs in the kernel: nothing on it "
                               "is changed.");
    auto observed = Family::gauge("vfmgr_pf_observed_timestamp_seconds",
                                  "When the PF was read last, as a Unix time.");
    auto up = Family::gauge("vfmgr_pf_up", "1 while the PF's interface is up.");
    auto carrier = Family::gauge("vfmgr_pf_carrier", "1 while the PF's interface has carrier.");
    auto most = Family::gauge("vfmgr_pf_vfs_max", "How many VFs the PF can have.");
    for (auto const& [pci, pf] : now.host->kernel.pfs) {
        info.add(info_of(pf.info, *now.desired), 1);
        readable.add(of(pci), !pf.stale);
        stuck.add(of(pci), pf.stuck.has_value());
        observed.add(of(pci), seconds_of(pf.observed_at));
        if (pf.stale) continue;
        if (!pf.info.ifname.empty()) {
            up.add(of(pci), pf.info.up);
            carrier.add(of(pci), pf.info.carrier);
        }
        most.add(of(pci), pf.info.total_vfs);
    }
    for (auto* const each : {&info, &readable, &stuck, &observed, &up, &carrier, &most})
        std::move(*each).move_into(all);
}

// Every state of every PF has a series, if only zero: a series that appears late hides an increase.
void add_vfs(Snapshot const& now, MetricFamilies& all) {
    auto vfs = Family::gauge("vfmgr_vfs", "VFs of each PF by what they are used for.");
    VfViews const views(now);
    for (auto const& [pci, pf] : now.host->kernel.pfs) {
        std::map<VfStatus, std::size_t> counts;
        for (auto const& view : views.of(pf)) ++counts[view.state];
        for (auto const& [state, name] : enum_names<VfStatus>)
            vfs.add(with(of(pci), "state", std::string(name)), counts[state]);
    }
    std::move(vfs).move_into(all);
}

void add_drift(Snapshot const& now, MetricFamilies& all) {
    auto drift = Family::gauge("vfmgr_pf_drift",
                               "Differences of a managed PF, and of its VFs, from what is desired; "
                               "without PFs that can't be read.");
    std::map<PciAddress, std::size_t> counts;
    for (auto const& [pci, pf] : now.desired->pfs)
        if (is_managed(pf) && can_be_judged(*now.host, *now.desired, pci)) counts[pci] = 0;
    for (auto const& one : find_drift(*now.host, *now.desired)) ++counts[one.pf];
    for (auto const& [pci, count] : counts) drift.add(of(pci), count);
    std::move(drift).move_into(all);
}

void add_attachments(Snapshot const& now, MetricFamilies& all) {
    std::map<AttachmentState, std::size_t> states;
    std::map<Verdict, std::size_t> verdicts;
    std::size_t unverified = 0;
    for (auto const& [id, attachment] : now.desired->attachments) {
        ++states[attachment.state];
        if (attachment.verification)
            ++verdicts[attachment.verification->verdict];
        else
            ++unverified;
    }
    auto by_state = Family::gauge("vfmgr_attachments", "Attachments by their state.");
    for (auto const& [state, name] : enum_names<AttachmentState>)
        by_state.add({{"state", std::string(name)}}, states[state]);
    auto by_verdict = Family::gauge("vfmgr_attachment_verdicts",
                                    "Attachments by the verdict of their latest verification; "
                                    "none: never verified.");
    for (auto const& [verdict, name] : enum_names<Verdict>)
        by_verdict.add({{"verdict", std::string(name)}}, verdicts[verdict]);
    by_verdict.add({{"verdict", "none"}}, unverified);
    for (auto* const each : {&by_state, &by_verdict}) std::move(*each).move_into(all);
}

struct Proofs {
    Family passed = Family::gauge("vfmgr_vf_verification_passed",
                                  "1 if the latest verification of the attached VF passed, 0 if "
                                  "it failed.");
    Family finished = Family::gauge("vfmgr_vf_verification_timestamp_seconds",
                                    "When it finished, as a Unix time.");
    Family bandwidth = Family::gauge("vfmgr_vf_verification_bandwidth_bytes_per_second",
                                     "What each of its tests measured.");
    Family latency = Family::gauge("vfmgr_vf_verification_latency_seconds",
                                   "What each of its tests measured, by quantile.");
    Family achieved = Family::gauge("vfmgr_vf_verification_achieved_ratio",
                                    "The measured bandwidth, divided by what the path can carry.");
};

void add_figures(MetricLabels const& vf, TestResult const& test, Proofs& proofs) {
    constexpr double bytes_per_megabit = 125'000;
    constexpr double per_second = 1e6;  // microseconds
    constexpr double percent = 100;
    auto const labels = with(vf, "test", test.name);
    for (auto const& [name, figure] : test.figures) {
        if (name == "bandwidth_mbps") proofs.bandwidth.add(labels, figure * bytes_per_megabit);
        if (name == "achieved_percent") proofs.achieved.add(labels, figure / percent);
        for (auto const& [quantile, of_it] :
             {std::pair("0.5", "p50_us"), std::pair("0.99", "p99_us")})
            if (name == of_it)
                proofs.latency.add(with(labels, "quantile", quantile), figure / per_second);
    }
}

void add_proofs(Snapshot const& now, MetricFamilies& all) {
    Proofs proofs;
    for (auto const& [id, attachment] : now.desired->attachments) {
        if (!attachment.verification) continue;
        auto const& [verdict, finished_at] =
            std::pair(attachment.verification->verdict, attachment.verification->finished_at);
        auto const vf = of(attachment.vf);
        if (verdict == Verdict::pass || verdict == Verdict::fail)
            proofs.passed.add(vf, verdict == Verdict::pass);
        if (finished_at) proofs.finished.add(vf, seconds_of(*finished_at));
        for (auto const& test : attachment.verification->tests) add_figures(vf, test, proofs);
    }
    for (auto* const each :
         {&proofs.passed, &proofs.finished, &proofs.bandwidth, &proofs.latency, &proofs.achieved})
        std::move(*each).move_into(all);
}

}  // namespace

MetricFamilies published_metrics(Snapshot const& now) {
    MetricFamilies all;
    for (auto const add :
         {add_host, add_standing, add_pfs, add_vfs, add_drift, add_attachments, add_proofs})
        add(now, all);
    return all;
}

MetricFamilies traffic_metrics(std::vector<PfTraffic> const& traffic) {
    using Member = std::optional<std::uint64_t> VfCounters::*;
    struct Counted {
        Family family;
        Member member;
    };
    auto const counted = [](std::string name, std::string help, Member member) {
        return Counted{Family::counter("vfmgr_vf_" + std::move(name) + "_total", std::move(help)),
                       member};
    };
    std::vector<Counted> all{
        counted("receive_bytes", "Received by the VF, as its PF's driver counts.",
                &VfCounters::rx_bytes),
        counted("receive_packets", "Received by the VF.", &VfCounters::rx_packets),
        counted("receive_drops", "Dropped before the VF received them.", &VfCounters::rx_dropped),
        counted("transmit_bytes", "Sent by the VF.", &VfCounters::tx_bytes),
        counted("transmit_packets", "Sent by the VF.", &VfCounters::tx_packets),
        counted("transmit_drops", "Sent by the VF, and dropped.", &VfCounters::tx_dropped)};
    auto hardware = Family::counter("vfmgr_pf_rdma_hw_counter_total",
                                    "Counters of the PF's RDMA device, by the kernel's names.");
    for (auto const& pf : traffic) {
        for (auto const& vf : pf.vfs)
            for (auto& [family, member] : all)
                if (auto const& count = vf.counters.*member)
                    family.add(of(VfId{pf.pf, vf.index}), *count);
        for (auto const& [name, count] : pf.rdma_hw_counters)
            hardware.add(with(of(pf.pf), "counter", name), count);
    }
    MetricFamilies families;
    for (auto& [family, member] : all) std::move(family).move_into(families);
    std::move(hardware).move_into(families);
    return families;
}

}  // namespace vfmgr
