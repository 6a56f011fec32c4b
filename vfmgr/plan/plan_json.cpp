// SPDX-License-Identifier: Apache-2.0
#include "api/types/json.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

template <>
void Json<Plan>::write(nlohmann::json& out, Plan const& plan) {
    auto steps = nlohmann::json::array();
    for (auto const& step : plan.steps) {
        nlohmann::json described;
        to_json(described, step);
        described["sentence"] = sentence(step);
        steps.push_back(std::move(described));
    }
    JsonWriter writer(out);
    writer.value("steps", steps);
    writer.value("blast_radius", plan.blast_radius);
    writer.value("notes", plan.notes);
}

}  // namespace vfmgr
