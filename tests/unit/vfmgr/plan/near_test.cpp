// SPDX-License-Identifier: Apache-2.0
// Which VFs a VM gets near its GPUs.
#include "vfmgr/plan/near.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/unit/vfmgr/plan/gpu_host.hpp"

namespace vfmgr {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A function below the ports of one switch of a NUMA node: those of one switch share its first
// port. Switch 0 is none: a root port of its own.
PciPlace below_switch(std::uint8_t bus, int node, std::uint8_t number) {
    auto const root = static_cast<std::uint8_t>(0xd0 + node);
    PciPlace place{PciAddress{0, bus, 0, 0}, {}, node, {}, {}};
    if (number == 0) {
        place.above = {{PciAddress{0, root, static_cast<std::uint8_t>(bus % 32), 7}}};
        return place;
    }
    place.above = {{PciAddress{0, root, number, 0}},
                   {PciAddress{0, static_cast<std::uint8_t>(0xe0 + number), 0, 0}},
                   {PciAddress{0, static_cast<std::uint8_t>(0xf0 + number),
                               static_cast<std::uint8_t>(bus % 32), 0}}};
    return place;
}

PciAddress on_bus(std::uint8_t bus) {
    return {0, bus, 0, 0};
}

// Two GPUs and two PFs, a pair below a switch of each node.
GpuHost two_pairs(std::size_t vfs = 4) {
    return gpu_host({below_switch(0x01, 0, 1), below_switch(0x02, 1, 2)},
                    {{below_switch(0x11, 0, 1), vfs}, {below_switch(0x12, 1, 2), vfs}});
}

GpuHost with_attached(GpuHost host, Attachment attachment, PfBase const& base) {
    attachment.state = AttachmentState::attached;
    host.desired.pfs[attachment.vf.pf].base = base;
    host.desired.attachments[attachment.id] = std::move(attachment);
    return host;
}

std::vector<std::pair<PciAddress, PciAddress>> pairs_of(AttachmentSetPlan const& set) {
    std::vector<std::pair<PciAddress, PciAddress>> pairs;
    for (auto const& one : set.attachments) pairs.emplace_back(one.near.value().gpu, one.vf.pf);
    std::ranges::sort(pairs);
    return pairs;
}

TEST(Near, PairsEachGpuWithThePfBelowItsSwitch) {
    auto const set = plan_near_gpus(two_pairs(), {near_gpu(), near_gpu()}).value();
    EXPECT_THAT(pairs_of(set), ElementsAre(std::pair(on_bus(0x01), on_bus(0x11)),
                                           std::pair(on_bus(0x02), on_bus(0x12))));
    for (auto const& one : set.attachments) EXPECT_EQ(one.near->distance, PciDistance::pix);
}

TEST(Near, SaysHowFarEachPfIs) {
    auto const one = plan_near_gpus(two_pairs(), {near_gpu()}).value();
    auto const& attachment = one.attachments.at(0);
    EXPECT_EQ(attachment.near, (NearGpu{on_bus(0x01), PciDistance::pix}));
    EXPECT_THAT(attachment.candidates,
                ElementsAre(Candidate{on_bus(0x11), true, "has 4 free VFs", PciDistance::pix},
                            Candidate{on_bus(0x12), false, "has 4 free VFs", PciDistance::sys}));
    EXPECT_THAT(one.plan.notes,
                testing::Contains("GPU 0000:01:00.0 and PF nic1 are a pair: what lies between them "
                                  "is PIX"));
}

// The first GPU is as near to the PF of the second as the second is; the PF has one VF.
TEST(Near, IsBestForTheSetAndNotForTheFirst) {
    auto const host = gpu_host({below_switch(0x01, 0, 1), below_switch(0x02, 0, 1)},
                               {{below_switch(0x11, 0, 1), 1}, {below_switch(0x12, 1, 0), 1}});
    auto const set = plan_near_gpus(host, {near_gpu(), near_gpu()}).value();
    EXPECT_EQ(badness(host.gpus, host.nics, placement_of(host, set.attachments)),
              best_of_all(host.gpus, host.nics));
    auto const third = gpu_host({below_switch(0x01, 0, 0), below_switch(0x02, 0, 1)},
                                {{below_switch(0x11, 0, 1), 1}, {below_switch(0x12, 0, 0), 1}});
    EXPECT_THAT(
        pairs_of(plan_near_gpus(third, {near_gpu(), near_gpu()}).value()),
        ElementsAre(std::pair(on_bus(0x01), on_bus(0x12)), std::pair(on_bus(0x02), on_bus(0x11))));
}

TEST(Near, PrefersAGpuThatHasNoVfYet) {
    // Both PFs are on the first GPU's node.
    auto host = gpu_host({below_switch(0x01, 0, 1), below_switch(0x02, 1, 2)},
                         {{below_switch(0x11, 0, 1), 4}, {below_switch(0x12, 0, 3), 4}});
    auto first = plan_near_gpus(host, {near_gpu()}).value();
    EXPECT_EQ(first.attachments.at(0).near, (NearGpu{on_bus(0x01), PciDistance::pix}));
    auto const base = first.bases.begin()->second;
    host = with_attached(std::move(host), std::move(first.attachments.at(0)), base);
    auto const second = plan_attachment(host.view, host.desired, "bbbb0001", near_gpu(), "seed");
    EXPECT_EQ(second.value().attachment.near, (NearGpu{on_bus(0x02), PciDistance::sys}));
}

TEST(Near, GivesAGpuASecondVfWhenAllHaveOne) {
    auto const set = plan_near_gpus(two_pairs(), {near_gpu(), near_gpu(), near_gpu(), near_gpu()});
    EXPECT_THAT(
        pairs_of(set.value()),
        ElementsAre(std::pair(on_bus(0x01), on_bus(0x11)), std::pair(on_bus(0x01), on_bus(0x11)),
                    std::pair(on_bus(0x02), on_bus(0x12)), std::pair(on_bus(0x02), on_bus(0x12))));
}

TEST(Near, GivesNoGpuASecondVfWhileOneHasNone) {
    auto const host =
        gpu_host({below_switch(0x01, 0, 1), below_switch(0x02, 0, 1), below_switch(0x03, 1, 2)},
                 {{below_switch(0x11, 0, 1), 8}});
    auto const set = plan_near_gpus(host, {near_gpu(), near_gpu(), near_gpu(), near_gpu()});
    std::set<PciAddress> gpus;
    for (auto const& one : set.value().attachments) gpus.insert(one.near->gpu);
    EXPECT_EQ(gpus.size(), 3U) << "the third GPU's VF is on the other node";
}

TEST(Near, TakesTheNextNearestWhereTheNearestHasNoVfLeft) {
    auto host = two_pairs(1);
    auto& taken = host.view.kernel.pfs.at(on_bus(0x11)).vfs.at(0);
    taken.holders.push_back({812, "qemu-system-x86"});
    auto const one = plan_near_gpus(host, {near_gpu()}).value();
    EXPECT_EQ(one.attachments.at(0).near, (NearGpu{on_bus(0x02), PciDistance::pix}))
        << "rather the other GPU's PF for the other GPU";
    auto const refused = plan_near_gpus(host, {near_gpu(), near_gpu()}).error();
    EXPECT_EQ(refused.problem, Problem::limit_exceeded);
    EXPECT_THAT(refused.detail, HasSubstr("0000:11:00.0 has no free VFs"));
}

// A VF without an IOMMU group can't be attached, which the plan on that PF says.
TEST(Near, LeavesOutAPfThatRefuses) {
    auto host = two_pairs();
    for (auto& vf : host.view.kernel.pfs.at(on_bus(0x11)).vfs) vf.iommu_group.reset();
    auto const set = plan_near_gpus(host, {near_gpu(), near_gpu()}).value();
    EXPECT_THAT(pairs_of(set), ElementsAre(std::pair(on_bus(0x01), on_bus(0x12)),
                                           std::pair(on_bus(0x02), on_bus(0x12))));
    EXPECT_THAT(set.attachments.at(0).candidates.at(1).reason,
                HasSubstr("was refused: VF 0 of nic1 has no IOMMU group"));
    for (auto& vf : host.view.kernel.pfs.at(on_bus(0x12)).vfs) vf.iommu_group.reset();
    auto const refused = plan_near_gpus(host, {near_gpu()}).error();
    EXPECT_EQ(refused.problem, Problem::unsupported);
    EXPECT_THAT(refused.detail, HasSubstr("no PF has a VF for VM vm1"));
}

TEST(Near, FindsTheGpuOfANamedPf) {
    auto named = near_gpu();
    named.pf = on_bus(0x12);
    auto const one = plan_near_gpus(two_pairs(), {named}).value();
    EXPECT_EQ(one.attachments.at(0).near, (NearGpu{on_bus(0x02), PciDistance::pix}));
    EXPECT_THAT(one.attachments.at(0).candidates, IsEmpty());
    named.vf = 9;
    EXPECT_THAT(plan_near_gpus(two_pairs(), {named}).error().detail, HasSubstr("has no VF 9"));
    named.vf = 0;
    EXPECT_THAT(plan_near_gpus(two_pairs(), {named, named}).error().detail,
                HasSubstr("nic2 has fewer free VFs than the requests that name it"));
}

TEST(Near, GivesTheOthersOfASetWhatIsLeft) {
    auto other = near_gpu();
    other.near.reset();
    other.pf = on_bus(0x11);
    auto const set = plan_near_gpus(two_pairs(), {other, near_gpu(), near_gpu()}).value();
    EXPECT_EQ(set.attachments.at(0).vf, (VfId{on_bus(0x11), 1}));
    EXPECT_FALSE(set.attachments.at(0).near);
    EXPECT_EQ(set.attachments.at(1).vf.index, 0);
}

TEST(Near, RefusesAVmWithoutAGpu) {
    auto spec = near_gpu();
    spec.vm = "vm2";
    auto const refused = plan_near_gpus(two_pairs(), {spec}).error();
    EXPECT_EQ(refused.problem, Problem::conflict);
    EXPECT_THAT(refused.detail, HasSubstr("VM vm2 has no GPU"));
    EXPECT_THAT(refused.remedy, HasSubstr("attach a GPU to it first"));
}

TEST(Near, RefusesWhileItIsNotKnownWhereGpusAre) {
    auto host = two_pairs();
    host.view.kernel.places.reset();
    EXPECT_EQ(plan_near_gpus(host, {near_gpu()}).error().problem, Problem::unavailable);
}

TEST(Near, KnowsNoDistanceToAPfThatWasNotPlaced) {
    auto host = two_pairs();
    host.view.kernel.places->pfs.clear();
    EXPECT_EQ(plan_near_gpus(host, {near_gpu()})->attachments.at(0).near->distance,
              PciDistance::unknown);
}

std::string notes_of(GpuHost const& host) {
    auto const set = plan_near_gpus(host, {near_gpu()}).value();
    return fmt::format("{}", fmt::join(set.plan.notes, "\n"));
}

TEST(Near, SaysThatASwitchSendsTheirTrafficAround) {
    auto host = two_pairs();
    EXPECT_THAT(notes_of(host), testing::Not(HasSubstr("root complex")));
    auto const port = host.nics.at(0).place.above.at(2).address;
    host.view.kernel.places->redirecting = {port};
    EXPECT_THAT(notes_of(host),
                HasSubstr("their traffic goes through the root complex all the same, unless the "
                          "NIC has its addresses translated (ATS): ACS of port " +
                          to_string(port)));
    host.view.kernel.places->redirecting.clear();
    host.view.kernel.places->unread = {port};
    EXPECT_THAT(notes_of(host), HasSubstr("is not known: ACS of port " + to_string(port)));
    // A port that both are below does not part them.
    host.view.kernel.places->unread = {host.nics.at(0).place.above.at(1).address};
    EXPECT_THAT(notes_of(host), testing::Not(HasSubstr("root complex")));
}

// --- beside every choice that there is ---

// How bad a choice is, the most important first: as Badness, but that any GPU may get any number.
struct Choice {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;  // GPU and PF, by request
};
using Judged = std::tuple<std::size_t, std::array<std::size_t, 5>, std::size_t>;

Judged judged(GpuHost const& host, std::vector<std::size_t> const& near, Choice const& choice) {
    Judged all{};
    auto& [uneven, pairs, shared] = all;
    auto of_gpu = near;
    std::vector<std::size_t> of_pf(host.nics.size());
    for (auto const& [gpu, pf] : choice.pairs) {
        ++of_gpu[gpu];
        auto const there = distance(host.gpus[gpu], host.nics[pf].place);
        if (there != PciDistance::pix) ++pairs.at(static_cast<std::size_t>(there));
        shared += of_pf[pf]++;
    }
    for (auto const count : of_gpu) uneven += count * count;
    return all;
}

std::optional<Judged> best_choice(GpuHost const& host, std::vector<std::size_t> const& near,
                                  std::vector<AttachmentSpec> const& specs) {
    std::optional<Judged> best;
    Choice choice;
    std::vector<std::size_t> free;
    for (auto const& nic : host.nics) free.push_back(nic.free_vfs);
    std::function<void()> next = [&] {
        auto const i = choice.pairs.size();
        if (i == specs.size()) {
            auto const one = judged(host, near, choice);
            if (!best || one < *best) best = one;
            return;
        }
        for (std::size_t pf = 0; pf < free.size(); ++pf) {
            if (free[pf] == 0) continue;
            if (specs[i].pf && *specs[i].pf != host.nics[pf].place.address) continue;
            --free[pf];
            for (std::size_t gpu = 0; gpu < host.gpus.size(); ++gpu) {
                choice.pairs.emplace_back(gpu, pf);
                next();
                choice.pairs.pop_back();
            }
            ++free[pf];
        }
    };
    next();
    return best;
}

PciPlace any_place(std::uint8_t bus) {
    auto place = below_switch(bus, *rc::gen::inRange(0, 2),
                              static_cast<std::uint8_t>(*rc::gen::inRange(0, 3)));
    if (*rc::gen::inRange(0, 8) == 0) place.numa_node.reset();
    return place;
}

GpuHost any_gpu_host() {
    std::vector<PciPlace> gpus;
    std::vector<NearNic> nics;
    for (int i = 0, count = *rc::gen::inRange(1, 4); i < count; ++i)
        gpus.push_back(any_place(static_cast<std::uint8_t>(1 + i)));
    for (int i = 0, count = *rc::gen::inRange(1, 4); i < count; ++i)
        nics.push_back({any_place(static_cast<std::uint8_t>(0x11 + i)),
                        static_cast<std::size_t>(*rc::gen::inRange(0, 4))});
    return gpu_host(gpus, nics);
}

RC_GTEST_PROP(Near, IsTheBestOfEveryChoiceForTheSet, ()) {
    auto host = any_gpu_host();
    // VFs of an earlier time, whose PF is gone: they count for their GPU alone.
    std::vector<std::size_t> near(host.gpus.size());
    for (std::size_t i = 0, count = *rc::gen::inRange<std::size_t>(0, 3); i < count; ++i) {
        auto const gpu = *rc::gen::inRange<std::size_t>(0, host.gpus.size());
        ++near[gpu];
        Attachment earlier;
        earlier.id = fmt::format("cccc{:04}", i);
        earlier.vm_uuid = example::vm1_uuid;
        earlier.vf = {{0xffff, 1, 0, 0}, static_cast<std::uint16_t>(i)};
        earlier.near = NearGpu{host.gpus[gpu].address, PciDistance::pix};
        host.desired.attachments[earlier.id] = earlier;
    }
    std::vector<AttachmentSpec> specs;
    for (int i = 0, count = *rc::gen::inRange(1, 5); i < count; ++i) {
        specs.push_back(near_gpu());
        if (*rc::gen::inRange(0, 4) == 0)
            specs.back().pf =
                host.nics.at(*rc::gen::inRange<std::size_t>(0, host.nics.size())).place.address;
    }
    auto const set = plan_near_gpus(host, specs);
    auto const best = best_choice(host, near, specs);
    RC_ASSERT(set.has_value() == best.has_value());
    if (!set) return;
    Choice chosen;
    for (auto const& one : set->attachments) {
        auto const gpu = std::ranges::find(host.gpus, one.near->gpu, &PciPlace::address);
        auto const pf = std::ranges::find(host.nics, one.vf.pf,
                                          [](NearNic const& nic) { return nic.place.address; });
        RC_ASSERT(one.near->distance == distance(*gpu, pf->place));
        chosen.pairs.emplace_back(gpu - host.gpus.begin(), pf - host.nics.begin());
    }
    RC_ASSERT(judged(host, near, chosen) == *best);
}

}  // namespace
}  // namespace vfmgr
