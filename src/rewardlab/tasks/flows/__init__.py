"""Points in the plane, made by a denoiser."""
