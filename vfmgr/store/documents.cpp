// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/store/documents.hpp"

#include "api/types/history_event.hpp"
#include "api/types/json_text.hpp"
#include "api/types/operation.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

template <class T>
std::string document_of(T const& value) {
    std::string text;
    JsonText::append(text, value);
    return text;
}

template <class T>
Result<T> value_of(Store::Impl const& store, std::string const& document, std::string const& what) {
    auto value = from_json_text<T>(document);
    if (!value) return fail(store.unreadable(what, value.error()));
    return value;
}

template std::string document_of(DesiredPf const&);
template std::string document_of(Attachment const&);
template std::string document_of(Quarantine const&);
template std::string document_of(FirmwareTries const&);
template std::string document_of(DesiredRdmaLink const&);
template std::string document_of(PfIdentity const&);
template std::string document_of(Operation const&);
template std::string document_of(Step const&);
template std::string document_of(std::vector<Step> const&);
template std::string document_of(Verification const&);
template std::string document_of(HistoryEvent const&);

template Result<DesiredPf> value_of(Store::Impl const&, std::string const&, std::string const&);
template Result<Attachment> value_of(Store::Impl const&, std::string const&, std::string const&);
template Result<Quarantine> value_of(Store::Impl const&, std::string const&, std::string const&);
template Result<FirmwareTries> value_of(Store::Impl const&, std::string const&, std::string const&);
template Result<DesiredRdmaLink> value_of(Store::Impl const&, std::string const&,
                                          std::string const&);
template Result<PfIdentity> value_of(Store::Impl const&, std::string const&, std::string const&);
template Result<Operation> value_of(Store::Impl const&, std::string const&, std::string const&);
template Result<Step> value_of(Store::Impl const&, std::string const&, std::string const&);
template Result<Verification> value_of(Store::Impl const&, std::string const&, std::string const&);
template Result<HistoryEvent> value_of(Store::Impl const&, std::string const&, std::string const&);

}  // namespace vfmgr
