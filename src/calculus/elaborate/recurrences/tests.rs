//! Loops that build arrays are scans.
