// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/placement.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/successive_shortest_path_nonnegative_weights.hpp>
#include <cstdint>

namespace vfmgr {
namespace {

using Cost = std::int64_t;
using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Properties =
    boost::property<boost::edge_capacity_t, Cost,
                    boost::property<boost::edge_residual_capacity_t, Cost,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor,
                                                    boost::property<boost::edge_weight_t, Cost>>>>;
using Flow = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                   Properties>;

// One pair further apart costs more than all pairs that are nearer, and a pair that is nearer costs
// more than all sharing of PFs.
class Costs {
  public:
    explicit Costs(std::size_t gpus) : base_(static_cast<Cost>(gpus) + 1), unit_(base_ * base_) {}

    [[nodiscard]] Cost of(PciDistance distance) const {
        Cost cost = 0;
        auto const classes = static_cast<int>(PciDistance::pix) - static_cast<int>(distance);
        for (int i = 0; i < classes; ++i) cost = cost == 0 ? unit_ : cost * base_;
        return cost;
    }

  private:
    Cost const base_;
    Cost const unit_;
};

// One unit of flow is a GPU with a VF.
Traits::edge_descriptor add_edge(Flow& flow, std::size_t from, std::size_t to, Cost weight) {
    auto const forth = boost::add_edge(from, to, flow).first;
    auto const back = boost::add_edge(to, from, flow).first;
    boost::put(boost::edge_capacity, flow, forth, 1);
    boost::put(boost::edge_capacity, flow, back, 0);
    boost::put(boost::edge_weight, flow, forth, weight);
    boost::put(boost::edge_weight, flow, back, -weight);
    boost::put(boost::edge_reverse, flow, forth, back);
    boost::put(boost::edge_reverse, flow, back, forth);
    return forth;
}

}  // namespace

Placement place_gpus(std::vector<PciPlace> const& gpus, std::vector<NearNic> const& nics) {
    Placement placement(gpus.size());
    if (gpus.empty() || nics.empty()) return placement;
    Flow flow(gpus.size() + nics.size() + 2);
    auto const source = gpus.size() + nics.size();
    auto const sink = source + 1;
    Costs const costs(gpus.size());
    std::vector<std::vector<Traits::edge_descriptor>> pairs(gpus.size());
    for (std::size_t g = 0; g < gpus.size(); ++g) {
        add_edge(flow, source, g, 0);
        for (std::size_t n = 0; n < nics.size(); ++n)
            pairs[g].push_back(
                add_edge(flow, g, gpus.size() + n, costs.of(distance(gpus[g], nics[n].place))));
    }
    // The second GPU of a PF costs 1, the third 2.
    for (std::size_t n = 0; n < nics.size(); ++n)
        for (std::size_t taken = 0; taken < std::min(nics[n].free_vfs, gpus.size()); ++taken)
            add_edge(flow, gpus.size() + n, sink, static_cast<Cost>(taken));
    boost::successive_shortest_path_nonnegative_weights(flow, source, sink);
    for (std::size_t g = 0; g < gpus.size(); ++g)
        for (std::size_t n = 0; n < nics.size(); ++n)
            if (boost::get(boost::edge_residual_capacity, flow, pairs[g][n]) == 0) placement[g] = n;
    return placement;
}

}  // namespace vfmgr
