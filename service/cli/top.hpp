// SPDX-License-Identifier: Apache-2.0
// What goes through VFs: rates between two answers of the API. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/vf.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

// Per second, in bits and packets; received means received by the VF. Absent: not counted at both
// times, or counted anew in between, as after a reset of the VF.
struct VfRates {
    std::optional<std::uint64_t> rx_bits, tx_bits, rx_packets, tx_packets, dropped;
    bool operator==(VfRates const&) const = default;
};

[[nodiscard]] std::map<VfId, VfRates> rates_between(std::vector<PfTraffic> const& before,
                                                    std::vector<PfTraffic> const& after);

// A VF that a VM has, or that something goes through.
struct TopRow {
    VfView vf;
    std::optional<Verdict> verdict{};  // of the attachment's latest verification
    VfRates rates{};
};
// Most traffic first, then by VF.
[[nodiscard]] std::vector<TopRow> top_rows(std::vector<VfView> const& vfs,
                                           std::vector<Attachment> const& attachments,
                                           std::map<VfId, VfRates> const& rates);
[[nodiscard]] Table top_table(std::vector<TopRow> const& rows);
// One line of JSON: {"items": […], "read_at": …}. Bits and packets are per second.
[[nodiscard]] std::string top_document(std::vector<TopRow> const& rows, Time read_at);

}  // namespace vfmgr
