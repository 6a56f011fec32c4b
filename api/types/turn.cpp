// SPDX-License-Identifier: Apache-2.0
#include "api/types/turn.hpp"

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

template <class F, Of<Turn> V>
void fields(F& f, V& turn) {
    f.value("position", turn.position);
    f.value("seconds", turn.seconds);
    f.value("own", turn.own);
}

}  // namespace

void to_json(nlohmann::json& out, Turn const& turn) {
    JsonWriter writer(out);
    fields(writer, turn);
}

void read(JsonReader& reader, Turn& turn) {
    fields(reader, turn);
}

}  // namespace vfmgr
