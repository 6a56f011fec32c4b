// SPDX-License-Identifier: Apache-2.0
// Values to and from the JSON text of a column; documents.cpp names the types. For store/*.cpp
// only.
#pragma once

#include <string>

#include "vfmgr/store/database.hpp"

namespace vfmgr {

template <class T>
[[nodiscard]] std::string document_of(T const& value);

// `what` names the row in the error: "attachment 3f9c2b1d".
template <class T>
[[nodiscard]] Result<T> value_of(Store::Impl const& store, std::string const& document,
                                 std::string const& what);

}  // namespace vfmgr
