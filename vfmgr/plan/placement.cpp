// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/placement.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/successive_shortest_path_nonnegative_weights.hpp>
#include <cstdint>
#include <numeric>

namespace vfmgr {
namespace {

// Holds whole numbers up to 2^53. Not an integer: Boost adds up what it takes for the distance of a
// vertex that can't be reached, the largest number of the type, which would overflow.
using Cost = double;
using Units = std::int64_t;
using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Properties =
    boost::property<boost::edge_capacity_t, Units,
                    boost::property<boost::edge_residual_capacity_t, Units,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor,
                                                    boost::property<boost::edge_weight_t, Cost>>>>;
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                    Properties>;
using Edge = Traits::edge_descriptor;

// A VF too many for one GPU costs more than all pairs; one pair further apart more than all pairs
// that are nearer; and a pair that is nearer more than all sharing of PFs, to which each VF adds
// less than twice the number of requests.
class Costs {
  public:
    explicit Costs(std::size_t requests)
        : base_(static_cast<Cost>(requests) + 1), unit_(2 * base_ * base_) {}

    [[nodiscard]] Cost of(PciDistance distance) const {
        Cost cost = 0;
        auto const classes = static_cast<int>(PciDistance::pix) - static_cast<int>(distance);
        for (int i = 0; i < classes; ++i) cost = i == 0 ? unit_ : cost * base_;
        return cost;
    }
    [[nodiscard]] Cost of_one_too_many() const { return of(PciDistance::unknown) * base_; }

  private:
    Cost const base_;
    Cost const unit_;
};

// Vertices: the source, GPUs, PFs as their GPUs reach them, PFs as their VFs leave them, offers,
// requests, the sink. One unit of flow is a request with a VF near a GPU.
class Flow {
  public:
    Flow(std::vector<GpuOfVm> const& gpus, std::vector<PfForVm> const& pfs,
         std::vector<VfOffer> const& offers, std::size_t requests)
        : gpus_(gpus),
          pfs_(pfs),
          offers_(offers),
          requests_(requests),
          costs_(requests),
          graph_(2 + gpus.size() + 2 * pfs.size() + offers.size() + requests) {
        add_gpus();
        add_pfs();
        for (std::size_t r = 0; r < requests_; ++r) add(request(r), sink(), 1, 0);
        boost::successive_shortest_path_nonnegative_weights(graph_, source(), sink());
    }

    [[nodiscard]] std::vector<std::optional<VfPlace>> places() const {
        std::vector<std::optional<VfPlace>> places(requests_);
        auto left = gpus_of_pfs();
        for (auto const& [edge, offer, request] : taken_) {
            if (through(edge) == 0) continue;
            auto& gpus = left.at(offers_[offer].pf);
            places[request] = VfPlace{gpus.back(), offer};
            gpus.pop_back();
        }
        return places;
    }

  private:
    [[nodiscard]] static std::size_t source() { return 0; }
    [[nodiscard]] static std::size_t sink() { return 1; }
    [[nodiscard]] static std::size_t gpu(std::size_t g) { return 2 + g; }
    [[nodiscard]] std::size_t reached(std::size_t p) const { return gpu(gpus_.size()) + p; }
    [[nodiscard]] std::size_t left(std::size_t p) const { return reached(pfs_.size()) + p; }
    [[nodiscard]] std::size_t offer(std::size_t o) const { return left(pfs_.size()) + o; }
    [[nodiscard]] std::size_t request(std::size_t r) const { return offer(offers_.size()) + r; }

    Edge add(std::size_t from, std::size_t to, std::size_t capacity, Cost weight) {
        auto const forth = boost::add_edge(from, to, graph_).first;
        auto const back = boost::add_edge(to, from, graph_).first;
        boost::put(boost::edge_capacity, graph_, forth, static_cast<Units>(capacity));
        boost::put(boost::edge_capacity, graph_, back, 0);
        boost::put(boost::edge_weight, graph_, forth, weight);
        boost::put(boost::edge_weight, graph_, back, -weight);
        boost::put(boost::edge_reverse, graph_, forth, back);
        boost::put(boost::edge_reverse, graph_, back, forth);
        return forth;
    }

    // The number of VFs that each GPU has in the end, or one less. Any GPU can go with any VF, so
    // this is always possible.
    [[nodiscard]] std::size_t vfs_in_the_end() const {
        std::size_t level = 0;
        for (std::size_t room = 0; room < requests_;) {
            ++level;
            room = 0;
            for (auto const& one : gpus_) room += level - std::min(level, one.near_vfs);
        }
        return level;
    }

    void add_gpus() {
        auto const level = gpus_.empty() ? 0 : vfs_in_the_end();
        for (std::size_t g = 0; g < gpus_.size(); ++g) {
            auto const room = level - std::min(level, gpus_[g].near_vfs);
            if (room == 0) continue;
            if (room > 1) add(source(), gpu(g), room - 1, 0);
            add(source(), gpu(g), 1, costs_.of_one_too_many());
            for (std::size_t p = 0; p < pfs_.size(); ++p)
                pairs_.push_back({add(gpu(g), reached(p), room,
                                      costs_.of(distance(gpus_[g].place, pfs_[p].place))),
                                  g, p});
        }
    }

    // The second VF of a PF costs 1, the third 2.
    void add_pfs() {
        std::vector<std::size_t> free(pfs_.size());
        for (std::size_t o = 0; o < offers_.size(); ++o) {
            auto const& one = offers_[o];
            free.at(one.pf) += one.count;
            add(left(one.pf), offer(o), one.count, 0);
            for (auto const r : one.requests)
                taken_.push_back({add(offer(o), request(r), 1, 0), o, r});
        }
        for (std::size_t p = 0; p < pfs_.size(); ++p)
            for (std::size_t taken = 0; taken < std::min(free[p], requests_); ++taken)
                add(reached(p), left(p), 1,
                    static_cast<Cost>(std::min(pfs_[p].vfs_of_vm, requests_) + taken));
    }

    [[nodiscard]] Units through(Edge const& edge) const {
        return boost::get(boost::edge_capacity, graph_, edge) -
               boost::get(boost::edge_residual_capacity, graph_, edge);
    }

    // A GPU is there once for each VF that it gets of the PF; the first GPU last.
    [[nodiscard]] std::vector<std::vector<std::size_t>> gpus_of_pfs() const {
        std::vector<std::vector<std::size_t>> gpus(pfs_.size());
        for (auto pair = pairs_.rbegin(); pair != pairs_.rend(); ++pair)
            gpus[pair->pf].insert(gpus[pair->pf].end(),
                                  static_cast<std::size_t>(through(pair->edge)), pair->gpu);
        return gpus;
    }

    struct Pair {
        Edge edge;
        std::size_t gpu, pf;
    };
    struct Taken {
        Edge edge;
        std::size_t offer, request;
    };

    std::vector<GpuOfVm> const& gpus_;
    std::vector<PfForVm> const& pfs_;
    std::vector<VfOffer> const& offers_;
    std::size_t const requests_;
    Costs const costs_;
    Graph graph_;
    std::vector<Pair> pairs_;
    std::vector<Taken> taken_;
};

}  // namespace

std::vector<std::optional<VfPlace>> place_requests(std::vector<GpuOfVm> const& gpus,
                                                   std::vector<PfForVm> const& pfs,
                                                   std::vector<VfOffer> const& offers,
                                                   std::size_t requests) {
    return Flow(gpus, pfs, offers, requests).places();
}

// A request for each GPU, of which any can get every VF.
Placement place_gpus(std::vector<PciPlace> const& gpus, std::vector<NearNic> const& nics) {
    std::vector<GpuOfVm> without_vfs;
    for (auto const& gpu : gpus) without_vfs.push_back({gpu});
    std::vector<std::size_t> requests(gpus.size());
    std::iota(requests.begin(), requests.end(), std::size_t{0});
    std::vector<PfForVm> pfs;
    std::vector<VfOffer> offers;
    for (auto const& nic : nics) {
        offers.push_back({pfs.size(), nic.free_vfs, requests});
        pfs.push_back({nic.place});
    }
    Placement placement(gpus.size());
    for (auto const& place : place_requests(without_vfs, pfs, offers, gpus.size()))
        if (place) placement[place->gpu] = offers[place->offer].pf;
    return placement;
}

}  // namespace vfmgr
