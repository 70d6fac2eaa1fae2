//! What one check found.

use serde::Serialize;

/// What a check is about. Reports show the groups in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorGroup {
    /// The driver and the GPU.
    Gpu,
    /// The link between host and GPU.
    Link,
    /// The host's memory.
    Memory,
    /// What the process may use.
    Limits,
    /// The process, its settings and its neighbours.
    Process,
}

impl DoctorGroup {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [
        Self::Gpu,
        Self::Link,
        Self::Memory,
        Self::Limits,
        Self::Process,
    ];

    /// The heading in texts.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Gpu => "driver and GPU",
            Self::Link => "link",
            Self::Memory => "memory",
            Self::Limits => "limits",
            Self::Process => "process",
        }
    }
}

/// How a check ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorStatus {
    /// As it should be.
    Ok,
    /// It works, but something makes it slower or smaller than it could be.
    Warn,
    /// It does not work.
    Fail,
    /// It cannot be seen here.
    Skip,
}

impl DoctorStatus {
    /// One word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }
}

/// What one check found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DoctorFinding {
    /// What the check is about.
    pub group: DoctorGroup,
    /// Its name, such as `link width`.
    pub check: String,
    /// Number of the GPU that it is about; `None` for the host.
    pub gpu: Option<u32>,
    /// How it ended.
    pub status: DoctorStatus,
    /// What was seen.
    pub seen: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// How much it matters beside other findings of the same status: 0 for nothing, 100 for all.
    pub weight: u8,
    /// Whether it is about a simulated device.
    pub simulated: bool,
}

impl DoctorFinding {
    /// A finding with nothing to do about it.
    #[must_use]
    pub fn new(
        group: DoctorGroup,
        check: impl Into<String>,
        status: DoctorStatus,
        seen: impl Into<String>,
    ) -> Self {
        Self {
            group,
            check: check.into(),
            gpu: None,
            status,
            seen: seen.into(),
            remedy: None,
            weight: 0,
            simulated: false,
        }
    }

    /// All is well.
    #[must_use]
    pub fn ok(group: DoctorGroup, check: &str, seen: impl Into<String>) -> Self {
        Self::new(group, check, DoctorStatus::Ok, seen)
    }

    /// It cannot be seen here.
    #[must_use]
    pub fn skip(group: DoctorGroup, check: &str, seen: impl Into<String>) -> Self {
        Self::new(group, check, DoctorStatus::Skip, seen)
    }

    /// It could be better. What to do follows with [`remedy`](Self::remedy).
    #[must_use]
    pub fn warn(group: DoctorGroup, check: &str, seen: impl Into<String>) -> Self {
        Self::new(group, check, DoctorStatus::Warn, seen)
    }

    /// It does not work. What to do follows with [`remedy`](Self::remedy).
    #[must_use]
    pub fn fail(group: DoctorGroup, check: &str, seen: impl Into<String>) -> Self {
        Self::new(group, check, DoctorStatus::Fail, seen)
    }

    /// The same with what to do about it, and how much that matters.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>, weight: u8) -> Self {
        self.remedy = Some(remedy.into());
        self.weight = weight;
        self
    }
}
