"""Results to MLflow and back."""
