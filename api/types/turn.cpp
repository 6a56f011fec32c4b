// SPDX-License-Identifier: Apache-2.0
#include "api/types/turn.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<Turn> V>
void fields(F& f, V& turn) {
    f.value("position", turn.position);
    f.value("seconds", turn.seconds);
    f.value("own", turn.own);
}

template struct Json<Turn>;

}  // namespace vfmgr
