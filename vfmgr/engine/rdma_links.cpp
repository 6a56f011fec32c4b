// SPDX-License-Identifier: Apache-2.0
// RDMA links that were requested by name: created, deleted, and created again when they went with
// their netdev and it is back.
#include "vfmgr/plan/rdma_links.hpp"

#include "vfmgr/engine/links.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {

// The netdev may be a PF's, on which attachments make links of their own.
ClaimKeys link_keys(HostView const& host, std::string const& name, std::string const& netdev) {
    ClaimKeys all{RdmaLinkKey{name}, NetdevKey{netdev}};
    for (auto const& [pci, pf] : host.kernel.pfs)
        if (pf.info.ifname == netdev) all.insert(pci);
    return all;
}

void Links::add_link(Operation& operation, SoftRdmaLink const& link, IfMatch const& if_match) {
    auto claimed = link_keys(*seams().control.snapshot().host, link.name, link.ifname);
    operations_.run(operation, std::move(claimed), [&]() -> Result<Batch> {
        VFMGR_CHECK(
            check_revision(seams().control.snapshot().desired->rdma_links, link.name, if_match));
        VFMGR_TRY(HostView const host, observe_for(seams(), HostNetwork{}));
        VFMGR_TRY(Plan const plan, plan_rdma_link(host, *seams().control.snapshot().desired,
                                                  trusted_netdevs_, link));
        VFMGR_CHECK(operations_.perform(operation, plan, OnFailure::undo));
        Batch batch;
        batch.save_rdma_links.push_back({link, operations_.next_revision()});
        return batch;
    });
}

void Links::remove_link(Operation& operation, RdmaLinkRemoval const& what,
                        IfMatch const& if_match) {
    auto const before = seams().control.snapshot();
    auto const known = before.desired->rdma_links.find(what.name);
    auto const netdev = known == before.desired->rdma_links.end() ? "" : known->second.link.ifname;
    operations_.run(operation, link_keys(*before.host, what.name, netdev), [&]() -> Result<Batch> {
        VFMGR_CHECK(
            check_revision(seams().control.snapshot().desired->rdma_links, what.name, if_match));
        VFMGR_TRY(HostView const host, observe_for(seams(), HostNetwork{}));
        VFMGR_TRY(Plan const plan,
                  plan_rdma_link_removal(host, *seams().control.snapshot().desired, what));
        VFMGR_CHECK(operations_.perform(operation, plan, OnFailure::undo));
        Batch batch;
        batch.erase_rdma_links.push_back(what.name);
        return batch;
    });
}

void Links::repair_links(Control::State& state) {
    if (operations_.stopping()) return;
    auto const host = seams().control.snapshot().host;
    if (!host->kernel.network) return;
    for (auto const& [name, desired] : state.desired().rdma_links) {
        auto plan = [this, link = desired.link](HostView const& observed,
                                                DesiredState const& now) -> Result<Plan> {
            auto const desired_link = now.rdma_links.find(link.name);
            if (desired_link == now.rdma_links.end() || desired_link->second.link != link)
                return Plan{};
            return plan_rdma_link_restore(*observed.kernel.network, trusted_netdevs_, link);
        };
        repairs_.begin_repair(
            state, *host,
            {"/v1/rdma-links/" + name, HostNetwork{}, link_keys(*host, name, desired.link.ifname),
             std::move(plan), OnFailure::undo});
    }
}

}  // namespace vfmgr
