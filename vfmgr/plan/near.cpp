// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/near.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "vfmgr/plan/attach_request.hpp"
#include "vfmgr/plan/placement.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr {
namespace {

PciPlace place_in(std::vector<PciPlace> const& places, PciAddress const& function) {
    auto const found = std::ranges::find(places, function, &PciPlace::address);
    return found == places.end() ? PciPlace{function, {}, {}, {}, {}} : *found;
}

// A request with the VFs that it could get.
struct Asking {
    std::size_t number;  // in the list of all
    Resolved request;
    std::vector<Ranked> ranked;  // none: it names its PF
    std::set<VfId> free;
};

void add_free(Asking& asking, HostView const& host, DesiredState const& desired,
              PciAddress const& pf) {
    auto const* const state = find_pf(host, pf);
    if (!state) return;
    for (auto const index : free_vfs(host, desired, *state, asking.request.choice()))
        if (!asking.request.spec.vf || asking.request.spec.vf == index)
            asking.free.insert({pf, index});
}

Result<Asking> asking_for(HostView const& host, DesiredState const& desired, VmInfo const& vm,
                          AttachmentSpec const& spec, RefusedPfs const& refused) {
    Asking asking{0, {}, {}, {}};
    VFMGR_TRY(asking.request, resolved(desired, spec));
    if (spec.pf) {
        add_free(asking, host, desired, *spec.pf);
        return asking;
    }
    asking.ranked = ranked_pfs(host, desired, asking.request, vm.uuid);
    for (auto& [candidate, possible] : asking.ranked) {
        auto const why = refused.find(candidate.pf);
        if (possible && why != refused.end()) {
            possible = false;
            candidate.reason = "was refused: " + why->second.detail;
        }
        if (possible) add_free(asking, host, desired, candidate.pf);
    }
    return asking;
}

// The VFs of each offer, lowest first.
struct Offers {
    std::vector<PfForVm> pfs;
    std::vector<VfOffer> offers;
    std::vector<std::vector<VfId>> vfs;
};

// VFs are alike when they are of one PF and the same requests can get them.
Offers offers_for(std::vector<Asking> const& all, HostPlaces const& places,
                  DesiredState const& desired, VmInfo const& vm) {
    std::map<VfId, std::vector<std::size_t>> requests;
    for (std::size_t i = 0; i < all.size(); ++i)
        for (auto const& vf : all[i].free) requests[vf].push_back(i);
    Offers offers;
    std::map<PciAddress, std::size_t> pfs;
    std::map<std::pair<PciAddress, std::vector<std::size_t>>, std::size_t> known;
    for (auto const& [vf, of] : requests) {
        auto const [pf, added] = pfs.try_emplace(vf.pf, offers.pfs.size());
        if (added)
            offers.pfs.push_back({place_in(places.pfs, vf.pf), vfs_of_vm(desired, vf.pf, vm.uuid)});
        auto const [offer, first] = known.try_emplace({vf.pf, of}, offers.offers.size());
        if (first) {
            offers.offers.push_back({pf->second, 0, of});
            offers.vfs.emplace_back();
        }
        ++offers.offers[offer->second].count;
        offers.vfs[offer->second].push_back(vf);
    }
    return offers;
}

// Best first: the chosen one, then the nearer ones.
std::vector<Candidate> candidates_for(Asking const& asking, HostPlaces const& places,
                                      PciPlace const& gpu, PciAddress const& chosen) {
    std::vector<Ranked> all = asking.ranked;
    for (auto& [candidate, possible] : all) {
        candidate.chosen = candidate.pf == chosen;
        candidate.distance = distance(gpu, place_in(places.pfs, candidate.pf));
    }
    std::ranges::sort(all, {}, [](Ranked const& one) {
        auto const nearness = static_cast<int>(*one.candidate.distance);
        return std::tuple(!one.candidate.chosen, !one.possible, -nearness, one.candidate.pf);
    });
    std::vector<Candidate> candidates;
    for (auto& one : all) candidates.push_back(std::move(one.candidate));
    return candidates;
}

Error no_gpu(VmInfo const& vm) {
    return discreetly(
        {Problem::conflict,
         fmt::format("VM {} has no GPU for its VF to be near: none of its PCI devices is a display "
                     "or 3D controller",
                     vm.name),
         "attach a GPU to it first (a <hostdev> in its XML), or leave near out"});
}

Error no_vf(Asking const& asking, HostView const& host, DesiredState const& desired,
            RefusedPfs const& refused) {
    auto const& spec = asking.request.spec;
    if (spec.pf) {
        auto const pf = readable_pf(host, *spec.pf);
        if (!pf) return pf.error();
        auto vf = choose_vf(host, desired, **pf, asking.request.choice());
        if (!vf) return std::move(vf.error());
        return {Problem::limit_exceeded,
                fmt::format("{} has fewer free VFs than the requests that name it",
                            display_name((*pf)->info)),
                "request fewer, or leave the PF out"};
    }
    std::vector<Candidate> candidates;
    for (auto const& [candidate, possible] : asking.ranked) candidates.push_back(candidate);
    auto first = refused.empty() ? std::nullopt : std::optional(refused.begin()->second);
    return none_suits(host, desired, asking.request, candidates, std::move(first));
}

std::vector<GpuOfVm> with_their_vfs(std::vector<PciPlace> const& gpus, DesiredState const& desired,
                                    VmInfo const& vm) {
    std::vector<GpuOfVm> all;
    for (auto const& gpu : gpus) {
        auto const is_near = [&](auto const& entry) {
            auto const& [id, attachment] = entry;
            return attachment.vm_uuid == vm.uuid && attachment.near &&
                   attachment.near->gpu == gpu.address;
        };
        all.push_back(
            {gpu, static_cast<std::size_t>(std::ranges::count_if(desired.attachments, is_near))});
    }
    return all;
}

Result<VmInfo const*> vm_of_all(HostView const& host, std::vector<AttachmentSpec> const& specs) {
    auto const asks = [](AttachmentSpec const& spec) { return spec.near.has_value(); };
    return readable_vm(host, std::ranges::find_if(specs, asks)->vm);
}

// Where two functions part below a switch, the ports between it and each of them.
std::vector<PciAddress> ports_between(PciPlace const& one, PciPlace const& other) {
    auto const parted =
        std::ranges::mismatch(one.above, other.above, {}, &PciPort::address, &PciPort::address);
    std::vector<PciAddress> ports;
    if (parted.in1 == one.above.begin()) return ports;
    for (auto port = parted.in1; port != one.above.end(); ++port) ports.push_back(port->address);
    for (auto port = parted.in2; port != other.above.end(); ++port) ports.push_back(port->address);
    return ports;
}

}  // namespace

std::vector<PciPlace> gpus_of(HostPlaces const& places, VmInfo const& vm) {
    std::vector<PciPlace> gpus;
    for (auto const& gpu : places.gpus)
        if (names(vm, gpu.address)) gpus.push_back(gpu);
    return gpus;
}

Result<std::vector<std::optional<NearVf>>> near_vfs(HostView const& host,
                                                    DesiredState const& desired,
                                                    std::vector<AttachmentSpec> const& specs,
                                                    RefusedPfs const& refused) {
    std::vector<std::optional<NearVf>> near(specs.size());
    if (std::ranges::none_of(specs, [](auto const& spec) { return spec.near.has_value(); }))
        return near;
    VFMGR_TRY(VmInfo const* const vm, vm_of_all(host, specs));
    if (!host.kernel.places)
        return fail(Problem::unavailable, "it was not observed yet where this host's GPUs are",
                    "try again, or name the PF and leave near out");
    auto const& places = *host.kernel.places;
    auto const gpus = with_their_vfs(gpus_of(places, *vm), desired, *vm);
    if (gpus.empty()) return fail(no_gpu(*vm));
    std::vector<Asking> all;
    for (std::size_t i = 0; i < specs.size(); ++i) {
        if (!specs[i].near) continue;
        VFMGR_TRY(auto asking, asking_for(host, desired, *vm, specs[i], refused));
        asking.number = i;
        all.push_back(std::move(asking));
    }
    auto offers = offers_for(all, places, desired, *vm);
    auto const placed = place_requests(gpus, offers.pfs, offers.offers, all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!placed[i]) return fail(no_vf(all[i], host, desired, refused));
        auto const& [gpu, offer] = *placed[i];
        auto const& gpu_place = gpus[gpu].place;
        auto& vfs = offers.vfs[offer];
        auto const vf = vfs.front();
        vfs.erase(vfs.begin());
        NearGpu const pair{gpu_place.address,
                           distance(gpu_place, offers.pfs[offers.offers[offer].pf].place)};
        near[all[i].number] = NearVf{pair, vf, candidates_for(all[i], places, gpu_place, vf.pf)};
    }
    return near;
}

std::vector<std::string> near_notes(HostView const& host, NearVf const& near) {
    auto const& places = *host.kernel.places;
    auto const name = display_name(find_pf(host, near.vf.pf)->info);
    std::vector<std::string> notes{
        fmt::format("GPU {} and PF {} are a pair: what lies between them is {}",
                    to_string(near.gpu.gpu), name, enum_name(near.gpu.distance))};
    auto const ports =
        ports_between(place_in(places.gpus, near.gpu.gpu), place_in(places.pfs, near.vf.pf));
    for (auto const& port : ports) {
        if (std::ranges::find(places.redirecting, port) != places.redirecting.end())
            notes.push_back(fmt::format(
                "their traffic goes through the root complex all the same, unless the NIC has its "
                "addresses translated (ATS): ACS of port {} redirects requests; the check pci.acs "
                "(vfctl doctor) tells more",
                to_string(port)));
        else if (std::ranges::find(places.unread, port) != places.unread.end())
            notes.push_back(fmt::format(
                "whether their traffic goes through the root complex all the same is not known: "
                "ACS of port {} can't be read",
                to_string(port)));
        else
            continue;
        break;
    }
    return notes;
}

Result<AttachmentPlan> plan_near(HostView const& host, DesiredState const& desired,
                                 std::string const& id, AttachmentSpec const& spec,
                                 NearVf const& near, std::string_view host_seed) {
    VFMGR_TRY(auto request, resolved(desired, spec));
    request.placed = near.vf.index;
    VFMGR_TRY(auto result, plan_on(host, desired, id, request, near.vf.pf, host_seed));
    result.attachment.near = near.gpu;
    result.attachment.candidates = near.candidates;
    auto notes = near_notes(host, near);
    std::ranges::move(notes, std::back_inserter(result.plan.notes));
    return result;
}

Result<AttachmentPlan> plan_nearest(HostView const& host, DesiredState const& desired,
                                    std::string const& id, AttachmentSpec const& spec,
                                    std::string_view host_seed) {
    VFMGR_TRY(auto set, plan_attachments(host, desired, {id}, {spec}, host_seed));
    auto& one = set.attachments.front();
    auto const base = set.bases.at(one.vf.pf);
    return AttachmentPlan{std::move(one), base, std::move(set.plan)};
}

}  // namespace vfmgr
